import type { Backend } from "../inference/engine.ts";
import type { Arrival } from "../inference/live-trajectory.ts";
import type { FromTurn, ToTurn } from "../inference/turn-messages.ts";
import type { Job, NewJob, Stage } from "../jobs/job.ts";
import type { Clock } from "../lib/clock.ts";
import type { SandboxHandle } from "../sandbox/sandbox.ts";
import type { NewRow } from "../store/new-jobs.ts";
import type { Store } from "../store/store.ts";
import type { WorkRow } from "../store/tables.ts";
import type { Log } from "../telemetry/log.ts";
import type { PoolWorker, SpawnWorker } from "./pool.ts";

/** On which inference server each trajectory lives, and when it may call it. */
export interface BackendChooser {
  available(): boolean;
  /** Chooses one for a trajectory, which lives there until `release`. */
  acquire(arrival: Arrival): Backend;
  /** @param whole whether the trajectory came to an end of its own */
  release(jobId: string, whole: boolean): void;
  /** What a thread says of its calls. */
  receive(event: FromTurn): void;
  /** How long a trajectory's calls have waited for leave since it was placed; 0 where there is none. */
  waitedMs(jobId: string): number;
  /**
   * @param tell reaches the thread that works on a job
   * @param wake is called when jobs that wait for a backend may find one, and when the weights are others
   */
  connect(tell: (message: ToTurn) => void, wake: () => void): void;
}

/** The part of the sandbox layer that the main thread uses. */
export interface SandboxKeeper {
  /** SIGKILL at once: the last rung of the ladder. */
  kill(handle: SandboxHandle): void;
  /** Kills one that goes beyond its limits while nobody works in it; `crossed` also tells of its death. */
  watch(handle: SandboxHandle): Disposable & { readonly crossed: AbortSignal };
  /** Ends it and proves that nothing is left. Does not fail. */
  end(handle: SandboxHandle): Promise<void>;
}

/** Does something again and again until it is disposed of. A simulation has its own. */
export type Every = (ms: number, work: () => void) => Disposable;

export const everyInterval: Every = (ms, work) => {
  const timer = setInterval(work, ms);
  return { [Symbol.dispose]: () => clearInterval(timer) };
};

/** Whether the disk has room: for new work, and to book what has happened. */
export interface Room {
  forWork(): boolean;
  forTick(bytes: number): boolean;
}

export type SchedulerSettings = {
  pools: Record<Stage, { threads: number; slots: number }>;
  /** Jobs with a sandbox that may be in INIT at once. */
  startsAtOnce: number;
  /** Images that may be pulled or unpacked at once. */
  imagesAtOnce: number;
  /** Sandboxes that may be in INIT or waiting for RUN. */
  maxSandboxesAhead: number;
  /** Sandboxes kept ready for images in demand. */
  warmSandboxes: number;
  maxQueuedJobs: number;
  /** Rollouts that may wait in their sandboxes for the next batch. */
  maxPausedAlive: number;
  /** How long what a batch left unfinished is kept for another one. */
  carryLimitMs: number;
  /** How long a worker has to confirm an end before its sandbox, and then its thread, is killed. */
  cancelGraceMs: number;
  /** Crashes of the service or of its thread that a job survives with others beside it. */
  maxCrashes?: number;
  /** How long a thread may give no sign of life before it is replaced. */
  stallMs?: number;
};

export type SchedulerParts = {
  store: Store;
  clock: Clock;
  log: Log;
  backends: BackendChooser;
  sandboxes: SandboxKeeper;
  spawn: SpawnWorker;
  /** Where an image's files are (empty: the default one); null: it may have to be fetched. Quick. */
  imageOnNode(image: string): string | null;
  /** Whether the node is short of memory. */
  isTight(): boolean;
  settings: SchedulerSettings;
  every?: Every;
  /** How many weight versions were announced after that moment; absent where nobody announces any. */
  versionsSince?(ms: number): number;
  /** The disk that the store is on; without it there is always room. */
  room?: Room;
  /** The user's module that a task kind is from; null for those of our own. */
  moduleOf?(taskKind: string): string | null;
  /** A tick that can't be made durable: the service can't go on. */
  onFatal(error: unknown): void;
};

export type ActiveJob = {
  readonly seq: number;
  readonly client: string;
  /** As it was when this stage, or one before it, began; for what does not change in an attempt. */
  readonly row: WorkRow;
  job: Job;
  readonly usesSandbox: boolean;
  /** What its sandbox is made from; empty: the service's default. */
  readonly image: string;
  /** It has gone ahead for its image, which is not known to be on the node. */
  fetching: boolean;
  readonly worker: PoolWorker;
  readonly backendId: string | null;
  /** Everything that may have to be killed for it: RUN has two while it ends. */
  handles: SandboxHandle[];
  /** How often it was told anew what it may do for its batch. */
  renewals: number;
  endAskedMs: number | null;
  killed: boolean;
};

/**
 * `madeId`: the id is the service's own, so no other job has it. `place`: how an error names it, such as
 * `rollouts[2]`; absent where it is a request's only one.
 */
export type Submission = { job: NewJob; row: NewRow; madeId?: boolean; place?: string };
export type Submitted = { id: string; created: boolean };
/** `job` as it was accepted; null for one that had been before. */
export type Accepted = Submitted & { job: Job | null };
