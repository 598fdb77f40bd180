import type { Backend } from "../inference/engine.ts";
import type { Job, NewJob, Stage } from "../jobs/job.ts";
import type { Clock } from "../lib/clock.ts";
import type { SandboxHandle } from "../sandbox/sandbox.ts";
import type { NewRow, Store } from "../store/store.ts";
import type { Log } from "../telemetry/log.ts";
import type { PoolWorker, SpawnWorker } from "./pool.ts";

/** Which inference server a new trajectory goes to. */
export interface BackendChooser {
  available(): boolean;
  /** Counts a trajectory on the chosen backend until `release`. */
  acquire(preferredId: string | null): Backend;
  release(id: string): void;
}

/** The part of the sandbox layer that the main thread uses. */
export interface SandboxKeeper {
  /** SIGKILL at once: the last rung of the ladder. */
  kill(handle: SandboxHandle): void;
  /** Ends it and proves that nothing is left. Does not fail. */
  end(handle: SandboxHandle): Promise<void>;
}

export type SchedulerSettings = {
  pools: Record<Stage, { threads: number; slots: number }>;
  /** Jobs with a sandbox that may be in INIT at once. */
  startsAtOnce: number;
  /** Sandboxes that may be in INIT or waiting for RUN. */
  maxSandboxesAhead: number;
  maxQueuedJobs: number;
  /** How long what a batch left unfinished is kept for another one. */
  carryLimitMs: number;
  /** How long a worker has to confirm an end before its sandbox, and then its thread, is killed. */
  cancelGraceMs: number;
};

export type SchedulerParts = {
  store: Store;
  clock: Clock;
  log: Log;
  backends: BackendChooser;
  sandboxes: SandboxKeeper;
  spawn: SpawnWorker;
  settings: SchedulerSettings;
  /** A tick that can't be made durable: the service can't go on. */
  onFatal(error: unknown): void;
};

export type ActiveJob = {
  readonly seq: number;
  job: Job;
  readonly usesSandbox: boolean;
  readonly worker: PoolWorker;
  readonly backendId: string | null;
  /** Everything that may have to be killed for it: RUN has two while it ends. */
  handles: SandboxHandle[];
  endAskedMs: number | null;
  killed: boolean;
};

export type Submission = { job: NewJob; row: NewRow };
export type Submitted = { id: string; created: boolean };
