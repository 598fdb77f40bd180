import { cpSync } from "node:fs";
import { acceptWith } from "../../src/cli/accept.ts";
import { acceptBatchWith, acceptGroupWith } from "../../src/cli/accept-group.ts";
import { RowSource } from "../../src/cli/row-source.ts";
import { loadConfig } from "../../src/config/config.ts";
import type { ErrorBody } from "../../src/errors.ts";
import type { Allowance } from "../../src/jobs/allowance.ts";
import type { Stage } from "../../src/jobs/job.ts";
import { BatchSources } from "../../src/pipeline/batch-sources.ts";
import type { StageFinished, StartStage } from "../../src/pipeline/messages.ts";
import { recoverJobs } from "../../src/pipeline/recovery.ts";
import { Scheduler } from "../../src/pipeline/scheduler.ts";
import { createApp } from "../../src/server/app.ts";
import { Gate } from "../../src/server/gate.ts";
import { Store } from "../../src/store/store.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { fakeBackends, fakeChooser } from "./fake-backends.ts";
import { unwatched } from "./fake-sandbox.ts";
import { FakeThread } from "./fake-thread.ts";
import { tempDir } from "./temp-dir.ts";
import { waitFor } from "./wait-for.ts";
import { idleWeights } from "./weights.ts";

export const BROKEN: ErrorBody = {
  code: "sandbox_start_failed",
  message: "no",
  boundary: "sandbox",
  retryable: true,
};

type Started = { start: StartStage; thread: FakeThread };
/** A rollout that takes its turns. */
type Playing = Started & {
  played: string[];
  allowance: Allowance | null;
  renewal: number;
  used: number;
};

type GroupServiceOptions = {
  slots?: number;
  carryLimitMs?: number;
  /** Where batches may read rows from. */
  rowsDir?: string;
  rowsUrl?: string;
  maxPausedAlive?: number;
  /** So many turns each rollout takes in RUN, one after the other as `turn` says. Without: it goes on by itself. */
  turns?: number;
};

/**
 * Routes, store and scheduler over threads that do what the test says: each rollout goes to EVAL by itself
 * and there waits for its reward or its fault.
 */
export function groupService(
  dataDir: string,
  {
    slots = 8,
    carryLimitMs = 1_000_000,
    maxPausedAlive = 4,
    turns = 0,
    ...from
  }: GroupServiceOptions = {},
) {
  const announcedMs: number[] = [];
  const store = new Store(dataDir);
  const clock = { ms: 1_000_000, nowMs: () => clock.ms++ };
  recoverJobs(store, clock, 2);
  const waiting = new Map<string, Started>();
  const playing = new Map<string, Playing>();
  const fatal: unknown[] = [];
  const pool = { threads: 1, slots };
  const threads: { stage: Stage; thread: FakeThread }[] = [];
  const spawn = (stage: Stage) => {
    const thread = new FakeThread();
    threads.push({ stage, thread });
    thread.onStart = (start) => {
      if (start.stage === "eval") waiting.set(start.jobId, { start, thread });
      else if (start.stage === "run" && turns > 0) {
        const played: string[] = start.record === null ? [] : JSON.parse(start.record);
        const { allowance } = start;
        playing.set(start.jobId, { start, thread, played, allowance, renewal: 0, used: 0 });
      } else queueMicrotask(() => thread.finish(start, { trajectory: "{}", sampledTokens: 7 }));
    };
    thread.onAllow = ({ jobId, attempt, allowance, renewal }) => {
      const it = playing.get(jobId);
      if (it?.start.attempt === attempt) Object.assign(it, { allowance, renewal, used: 0 });
    };
    thread.onCancel = ({ jobId, attempt }) => {
      const held = waiting.get(jobId) ?? playing.get(jobId);
      if (held?.start.attempt !== attempt) return;
      waiting.delete(jobId);
      playing.delete(jobId);
      if (held) queueMicrotask(() => thread.finish(held.start, { error: BROKEN }));
    };
    return thread;
  };
  const scheduler = new Scheduler({
    ...{ store, clock, spawn, log: createLog("silent") },
    backends: fakeChooser(),
    sandboxes: { kill: () => {}, watch: unwatched, end: async () => {} },
    isTight: () => false,
    imageOnNode: () => "/",
    settings: {
      pools: { init: pool, run: pool, eval: { threads: 1, slots: 10 * slots } },
      startsAtOnce: 64,
      imagesAtOnce: 2,
      warmSandboxes: 0,
      maxSandboxesAhead: 64,
      maxQueuedJobs: 1000,
      maxPausedAlive,
      carryLimitMs,
      cancelGraceMs: 1_000_000,
    },
    versionsSince: (ms) => announcedMs.filter((at) => at > ms).length,
    onFatal: (error) => fatal.push(error),
  });
  const accept = acceptWith(loadConfig({ env: {}, flags: { num_attempts: 1 } }), () => {});
  const acceptGroup = acceptGroupWith(accept);
  const { rowsDir = null, rowsUrl } = from;
  const rows = new RowSource({
    ...{ folder: rowsDir, allowedUrls: rowsUrl ? [rowsUrl] : [], timeoutMs: 20_000 },
  });
  const { acceptRow, ...acceptBatches } = acceptBatchWith(acceptGroup, (at) => rows.check(at));
  const sources = new BatchSources({
    ...{ batches: scheduler.batches, acceptRow, maxLineBytes: 10_000 },
    read: (...part) => rows.read(...part),
  });
  const app = createApp({
    ...{ store, scheduler, accept, maxBodyBytes: 1_000_000, version: "0.0.0-test" },
    acceptGroup,
    ...acceptBatches,
    slowReaderMs: 30_000,
    gate: new Gate({ maxWaiting: 100, maxStreams: 1 }),
    backends: fakeBackends(),
    weights: idleWeights(),
    sandboxes: { driver: "none", missing: () => [] },
  });
  return {
    store,
    scheduler,
    fatal,
    clock,
    threads,
    /** New weights, as the trainer announces them. */
    announce: () => announcedMs.push(clock.nowMs()),
    /** Rollouts that wait for their reward. */
    waiting,
    async send(
      method: string,
      path: string,
      body?: unknown,
      client = "test",
      // biome-ignore lint/suspicious/noExplicitAny: what the assertions look at is what is tested.
    ): Promise<{ status: number; body: any }> {
      const init: RequestInit = { method };
      if (body !== undefined) init.body = JSON.stringify(body);
      const response = await app.request(path, init, { keepOpen() {}, closeIfStuck() {}, client });
      return { status: response.status, body: await response.json() };
    },
    /** Rollouts in RUN, also those that are paused in their thread. */
    playing,
    /**
     * A rollout takes one turn of RUN, named by the attempt in which it took place. It goes to EVAL with its last one,
     * and pauses before one that it may not take.
     */
    async turn(jobId: string): Promise<"went" | "paused"> {
      const it = await waitFor(() => playing.get(jobId), `${jobId} to be in RUN`);
      const { start, thread, played, allowance, renewal } = it;
      const { attempt } = start;
      if (it.used >= (allowance?.turns ?? Number.POSITIVE_INFINITY)) {
        thread.emit({
          type: "rollout_paused",
          jobId,
          attempt,
          renewal,
          record: JSON.stringify(played),
        });
        return "paused";
      }
      it.used++;
      if (played.push(`turn of attempt ${attempt}`) >= turns) {
        playing.delete(jobId);
        thread.finish(start, { trajectory: JSON.stringify(played), sampledTokens: 7 });
      }
      return "went";
    },
    /** A rollout fails in RUN, for no reason of its own. */
    break(jobId: string): void {
      const it = playing.get(jobId);
      playing.delete(jobId);
      if (it) it.thread.finish(it.start, { error: BROKEN });
    },
    /** Gives a rollout its reward, or has it fail. Waits until it has come to EVAL. */
    async give(jobId: string, end: number | ErrorBody): Promise<void> {
      const held = await waitFor(() => waiting.get(jobId), `${jobId} to come to EVAL`);
      waiting.delete(jobId);
      held.thread.finish(held.start, answer(end));
    },
    async [Symbol.asyncDispose]() {
      sources[Symbol.dispose]();
      const over = scheduler.drain(0, Promise.resolve());
      for (const { start, thread } of [...waiting.values(), ...playing.values()]) {
        thread.finish(start, { error: BROKEN });
      }
      await over;
      store[Symbol.dispose]();
      if (fatal.length > 0) throw fatal[0];
    },
  };
}

/** A group service that can be killed, as by `kill -9`: the files as they are, and nobody who closes them. */
export function mortalGroupService(options: GroupServiceOptions = {}) {
  const folders = new DisposableStack();
  let at = folders.use(tempDir()).path;
  let service = groupService(at, options);
  return {
    /** The one that lives. */
    get now() {
      return service;
    },
    async kill(): Promise<void> {
      const next = folders.use(tempDir()).path;
      cpSync(at, next, { recursive: true });
      await service[Symbol.asyncDispose]();
      at = next;
      service = groupService(at, options);
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      folders.dispose();
    },
  };
}

function answer(end: number | ErrorBody): Partial<StageFinished> {
  if (typeof end !== "number") return { error: end };
  return { verdict: { reward: end, rule: "fake", reason: "The test said so." } };
}
