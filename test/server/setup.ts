import { acceptWith } from "../../src/cli/accept.ts";
import { acceptBatchWith, acceptGroupWith } from "../../src/cli/accept-group.ts";
import { mountCompat } from "../../src/cli/compat.ts";
import { prorlAddresses } from "../../src/cli/prorl-addresses.ts";
import { loadConfig } from "../../src/config/config.ts";
import { BackendRegistry } from "../../src/inference/registry.ts";
import type { Stage } from "../../src/jobs/job.ts";
import { systemClock } from "../../src/lib/clock.ts";
import { Scheduler } from "../../src/pipeline/scheduler.ts";
import { createApp } from "../../src/server/app.ts";
import { Gate } from "../../src/server/gate.ts";
import type { MissingPart } from "../../src/server/parts.ts";
import type { Disk } from "../../src/store/disk-file.ts";
import { Store } from "../../src/store/store.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { fakeBackends, fakeChooser } from "../support/fake-backends.ts";
import { unwatched } from "../support/fake-sandbox.ts";
import { FakeThread } from "../support/fake-thread.ts";
import { tempDir } from "../support/temp-dir.ts";
import { idleWeights } from "../support/weights.ts";

export const MAX_BODY_BYTES = 10_000;
export const ECHO = { instance: { data_source: "echo" } };

type Options = {
  held?: boolean;
  maxWaiting?: number;
  compat?: boolean;
  slowReaderMs?: number;
  /** Instead of the machine's. */
  disk?: Disk | undefined;
  /** What sandboxes lack. */
  missing?: MissingPart[];
};

/** The real routes, store and scheduler; the worker threads answer at once unless `held`. `compat`: others' APIs too. */
export function setup({
  held = false,
  maxWaiting = 100,
  compat = false,
  slowReaderMs = 30_000,
  disk,
  missing = [],
}: Options = {}) {
  const dir = tempDir();
  const store = new Store(dir.path, false, disk);
  const system = systemClock();
  const clock = { aheadMs: 0, nowMs: () => system.nowMs() + clock.aheadMs };
  const threads: FakeThread[] = [];
  const scheduler = new Scheduler({
    store,
    clock,
    log: createLog("silent"),
    backends: fakeChooser(),
    sandboxes: { kill: () => {}, watch: unwatched, end: async () => {} },
    isTight: () => false,
    imageOnNode: () => "/",
    spawn: (_stage: Stage) => {
      const thread = new FakeThread();
      threads.push(thread);
      thread.onStart = (start) => {
        if (!held) thread.finish(start);
      };
      return thread;
    },
    settings: {
      pools: {
        init: { threads: 1, slots: 8 },
        run: { threads: 1, slots: 8 },
        eval: { threads: 1, slots: 8 },
      },
      startsAtOnce: 8,
      imagesAtOnce: 2,
      warmSandboxes: 0,
      maxSandboxesAhead: 8,
      maxQueuedJobs: 100,
      maxPausedAlive: 4,
      carryLimitMs: 1_000_000,
      cancelGraceMs: 1000,
    },
    onFatal: (error) => {
      throw error;
    },
  });
  const config = loadConfig({ env: {}, flags: { max_body_bytes: MAX_BODY_BYTES } });
  const accept = acceptWith(config, () => {});
  const acceptGroup = acceptGroupWith(accept);
  const gate = new Gate({ maxWaiting, maxStreams: 2 });
  const backends = fakeBackends();
  const app = createApp({
    store,
    scheduler,
    backends,
    weights: idleWeights(),
    sandboxes: { driver: "apptainer", missing: () => missing },
    accept,
    acceptGroup,
    ...acceptBatchWith(acceptGroup, () => {}),
    gate,
    slowReaderMs,
    maxBodyBytes: MAX_BODY_BYTES,
    version: "0.0.0-test",
  });
  if (compat) {
    const addresses = prorlAddresses(new BackendRegistry(), store, clock, () => {});
    mountCompat(app, config, { store, scheduler, backends, addresses, accept, gate });
  }
  const env = { keepOpen: () => {}, closeIfStuck: () => {}, client: "test" };
  const send = async (method: string, path: string, body?: unknown) => {
    const init: RequestInit = { method };
    const raw = typeof body === "string" || body instanceof ReadableStream;
    if (body !== undefined) init.body = raw ? body : JSON.stringify(body);
    const response = await app.request(path, init, env);
    // biome-ignore lint/suspicious/noExplicitAny: what the assertions look at is what is tested.
    const reply: any = await response.json();
    return { status: response.status, body: reply };
  };
  return {
    app,
    env,
    folder: dir.path,
    clock,
    store,
    threads,
    scheduler,
    send,
    /** Status, code and field of a refusal: what a client program looks at. */
    refusal: async (body: unknown) => {
      const { status, body: reply } = await send("POST", "/v1/rollouts", body);
      return [status, reply.error?.code, reply.error?.field];
    },
    async [Symbol.asyncDispose]() {
      const over = scheduler.drain(0, Promise.resolve());
      for (const thread of threads) for (const start of thread.starts()) thread.finish(start);
      await over;
      store[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}
