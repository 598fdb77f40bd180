import { readFileSync } from "node:fs";
import type { Config } from "../config/settings.ts";
import { toErrorBody } from "../errors.ts";
import { systemClock } from "../lib/clock.ts";
import { isMemoryTight } from "../lib/memory.ts";
import { BatchSources } from "../pipeline/batch-sources.ts";
import { Janitor } from "../pipeline/janitor.ts";
import type { WorkerSettings } from "../pipeline/messages.ts";
import { recoverJobs } from "../pipeline/recovery.ts";
import { Scheduler } from "../pipeline/scheduler.ts";
import { takeCgroup } from "../sandbox/cgroup.ts";
import { sandboxRoot } from "../sandbox/driver.ts";
import { killSandbox } from "../sandbox/end.ts";
import { endReported } from "../sandbox/end-reported.ts";
import { imageOnNode } from "../sandbox/images/on-node.ts";
import { reapSandboxes } from "../sandbox/reaper.ts";
import { watchParked } from "../sandbox/watchdog.ts";
import { createApp } from "../server/app.ts";
import { Gate } from "../server/gate.ts";
import { type Listening, listen } from "../server/listen.ts";
import { checkSocketPath } from "../server/unix-socket.ts";
import { DiskRoom } from "../store/disk-room.ts";
import { Store } from "../store/store.ts";
import { TASK_KINDS } from "../tasks/registry.ts";
import type { Log } from "../telemetry/log.ts";
import { acceptWith } from "./accept.ts";
import { acceptBatchWith, acceptGroupWith } from "./accept-group.ts";
import { startBalancing } from "./balancing.ts";
import { callbackService } from "./callback-service.ts";
import type { CliContext } from "./command.ts";
import { mountCompat } from "./compat.ts";
import { descriptors } from "./descriptors.ts";
import { missingParts } from "./missing-parts.ts";
import { preflight, socketOf } from "./preflight.ts";
import { RowSource } from "./row-source.ts";
import { schedulerSettings } from "./scheduler-settings.ts";
import { tcpAddress } from "./tcp-address.ts";
import { VERSION } from "./version.ts";
import { workerSettings } from "./worker-settings.ts";

const SLOW_READER_MS = 30_000;
const ROWS_TIMEOUT_MS = 60_000;

export type Service = Listening & {
  /**
   * Ends everything on the one ladder: running jobs have `graceMs` to end by themselves, or until `hurry`.
   * Resolves with how many were handed back to the queue.
   */
  shutDown(graceMs: number, hurry: Promise<unknown>): Promise<{ handedBack: number }>;
};

/**
 * Builds the service from its parts, once, and starts it. What a predecessor left in the data folder is
 * cleaned up and taken over before the first request is answered.
 *
 * @param whyNoSandbox with driver=none, where that was not asked for
 * @throws UsageError for what the settings name and is not there, before the database is opened
 */
export async function startService(
  config: Config,
  log: Log,
  context: CliContext,
  whyNoSandbox?: string,
): Promise<Service> {
  const examined = await preflight(config, process.env);
  const cgroup = takeCgroup();
  const settings: WorkerSettings = {
    ...workerSettings(config),
    cgroups: "path" in cgroup ? cgroup.path : null,
  };
  const callbacks = callbackService(config, process.env);
  const socket = socketOf(config);
  checkSocketPath(socket);
  const address = { ...tcpAddress(config), socket, maxRequests: config.max_requests };
  // A start that fails ends what it has begun: what polls or listens would keep the process alive for ever.
  await using begun = new AsyncDisposableStack();
  const limits = { floorBytes: config.disk_floor_bytes, ballastBytes: config.disk_ballast_bytes };
  const room = new DiskRoom(config.data_dir, limits, (state) =>
    log[state === "ballast_dropped" ? "warn" : "info"]("disk", { state }),
  );
  begun.use(room);
  const { status, detail, mend } = descriptors(config, readFileSync("/proc/self/limits", "utf8"));
  if (status !== "ok") log.warn("few descriptors", { detail, mend });
  const store = begun.use(new Store(config.data_dir, config.recover));
  const clock = systemClock();
  const reaped = await reapSandboxes(sandboxRoot(config.data_dir));
  const recovered = recoverJobs(store, clock, config.max_crashes);
  log.info("took over the data folder", { data_dir: config.data_dir, ...reaped, ...recovered });
  const { desk, backends, weights, addresses, ...balancing } = startBalancing(config, {
    ...{ store, clock, log },
  });
  begun.defer(balancing.stop);
  if (examined) backends.admit(examined);
  const scheduler = new Scheduler({
    store,
    clock,
    log,
    backends: desk,
    sandboxes: {
      kill: killSandbox,
      watch: (handle) => watchParked(handle, settings.sandbox),
      end: (handle) => endReported(handle, log),
    },
    imageOnNode: (image) => {
      const chosen = image || settings.defaultImage;
      return chosen && imageOnNode(settings.images, chosen);
    },
    isTight: isMemoryTight,
    moduleOf: (name) => TASK_KINDS.find((kind) => kind.name === name)?.module ?? null,
    versionsSince: (ms) => weights.announcedAfter(ms),
    spawn: (stage) => context.spawnWorker(stage, settings),
    settings: schedulerSettings(config),
    room,
    onFatal: (error) => die(error, log),
  });
  const accept = acceptWith(config, callbacks.check, whyNoSandbox);
  const keep = {
    ms: config.retention_ms,
    bytes: config.retention_bytes,
    carryMs: config.carry_limit_ms,
  };
  const janitor = new Janitor({ store, clock, log, keep });
  const delivery = callbacks.start(store, clock, log);
  const maxBodyBytes = config.max_body_bytes;
  const acceptGroup = acceptGroupWith(accept);
  const rows = new RowSource({
    folder: config.rows_dir ?? null,
    allowedUrls: settings.tasks.http.allowedUrls,
    timeoutMs: ROWS_TIMEOUT_MS,
  });
  const { acceptRow, ...acceptBatches } = acceptBatchWith(acceptGroup, (at) => rows.check(at));
  const sources = new BatchSources({
    ...{ batches: scheduler.batches, acceptRow, maxLineBytes: maxBodyBytes },
    read: (...part) => rows.read(...part),
  });
  const gate = new Gate({ maxWaiting: config.max_waiting, maxStreams: config.max_streams });
  const app = createApp({
    ...{ store, scheduler, backends, weights, accept, maxBodyBytes, version: VERSION },
    sandboxes: { driver: config.driver, missing: () => missingParts(config, settings) },
    acceptGroup,
    ...acceptBatches,
    gate,
    slowReaderMs: SLOW_READER_MS,
  });
  mountCompat(app, config, { store, scheduler, backends, addresses, accept, gate });
  const stopPipeline = async (graceMs: number, hurry: Promise<unknown>) => {
    sources[Symbol.dispose]();
    const result = await scheduler.drain(graceMs, hurry);
    delivery?.stop();
    janitor[Symbol.dispose]();
    room[Symbol.dispose]();
    balancing.stop();
    // The threads are gone, and with them what was still being deleted in the background.
    await reapSandboxes(sandboxRoot(config.data_dir));
    return result;
  };
  begun.defer(() => stopPipeline(0, Promise.resolve()).then(() => undefined));
  const listening = await listen(app, { ...address, durable: () => store.durable() });
  begun.move();
  return {
    ...listening,
    async shutDown(graceMs, hurry) {
      const result = await stopPipeline(graceMs, hurry);
      await listening.stop();
      store[Symbol.dispose]();
      return result;
    },
  };
}

/** Crash-only: what was acknowledged is durable, the sandboxes die with us, a restart takes over. */
function die(error: unknown, log: Log): never {
  log.error("the service can't go on", { error: toErrorBody(error) });
  process.exit(70);
}
