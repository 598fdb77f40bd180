import type { ErrorBody } from "../errors.ts";
import type { Backend } from "../inference/engine.ts";
import type { FromTurn, ToTurn } from "../inference/turn-messages.ts";
import type { Allowance } from "../jobs/allowance.ts";
import type { Stage } from "../jobs/job.ts";
import type { ImageSettings } from "../sandbox/images/images.ts";
import type { DriverName, IsolationLevel, SandboxHandle, SandboxSpec } from "../sandbox/sandbox.ts";
import type { TaskSettings } from "../tasks/settings.ts";
import type { Verdict } from "../verifiers/verdict.ts";

/** Everything that crosses between the main thread and the workers, as plain data. */
export type ToWorker = Setup | StartStage | AllowTurns | CancelStage | WarmUp | Ping | ToTurn;
export type FromWorker =
  | Pong
  | WorkerReady
  | ImageFound
  | SandboxStarted
  | WarmedUp
  | RolloutPaused
  | SlotFreed
  | StageFinished
  | FromTurn;

/** The first message to a fresh thread. */
export type Setup = { type: "setup"; settings: WorkerSettings };

/** A job's stage to work on. JSON texts travel as they were stored; the worker parses them. */
export type StartStage = {
  type: "start";
  jobId: string;
  attempt: number;
  stage: Stage;
  taskKind: string;
  instance: string;
  options: string;
  /** The job's sandbox, if INIT made one. */
  handle: SandboxHandle | null;
  /** One of the job's image that nobody has used, for INIT. */
  warm: WarmSandbox | null;
  /** Where its trajectory begins; set for RUN where the task kind calls a model. */
  backend: Backend | null;
  /** What RUN left, for EVAL. */
  outcome: string | null;
  /** What RUN may do before it pauses; null: all that it likes. */
  allowance: Allowance | null;
  /** The trajectory of the paused rollout that RUN goes on with, as JSON; null where it begins one. */
  record: string | null;
};

/** What a rollout in RUN may do from now on, which may end its pause, or have it pause at the end of its turn. */
export type AllowTurns = {
  type: "allow_turns";
  jobId: string;
  attempt: number;
  /** Counts these messages for the attempt. */
  renewal: number;
  allowance: Allowance | null;
};

/** Ends the stage: end the sandbox, abort model calls, confirm with what was recorded. */
export type CancelStage = { type: "cancel"; jobId: string; attempt: number; reason: ErrorBody };

/** Is answered at once by a thread whose event loop turns. */
export type Ping = { type: "ping" };
export type Pong = { type: "pong" };

export type WorkerReady = { type: "ready" };

/** Asks for a sandbox that no job needs yet. `image` as jobs call it; empty: the default one. */
export type WarmUp = { type: "warm_up"; id: string; image: string };

/** A sandbox that nobody has used, and what it was made by. */
export type WarmSandbox = { handle: SandboxHandle; spec: SandboxSpec };

/** `warm` is null where it did not start. */
export type WarmedUp = { type: "warmed_up"; id: string; warm: WarmSandbox | null };

/** Sent as soon as the files of a job's image are on the node. */
export type ImageFound = { type: "image_found"; jobId: string; attempt: number; path: string };

/** Sent as soon as a sandbox exists, so that the main thread can kill it if the worker hangs. */
export type SandboxStarted = {
  type: "sandbox_started";
  jobId: string;
  attempt: number;
  handle: SandboxHandle;
};

/** It waits at the end of a turn, with all that it has, until it is allowed more or cancelled. */
export type RolloutPaused = {
  type: "rollout_paused";
  jobId: string;
  attempt: number;
  /** The last renewal that it has heard of: one that is under way may have ended the pause. */
  renewal: number;
  /** The trajectory so far as JSON. */
  record: string;
};

/**
 * Of a stage that was aborted, once nothing of it runs any more: another job may have its slot. Its end follows with
 * what it has recorded, which takes the longer the more that is.
 */
export type SlotFreed = { type: "slot_freed"; jobId: string; attempt: number; stage: Stage };

export type StageFinished = {
  type: "stage_finished";
  jobId: string;
  attempt: number;
  stage: Stage;
  /** The sandbox, where the next stage needs it; null once it is gone. */
  handle: SandboxHandle | null;
  /** Null when the stage succeeded. */
  error: ErrorBody | null;
  /** What RUN leaves for EVAL, as JSON. */
  outcome: string | null;
  /** The trajectory as JSON, also a partial one. */
  trajectory: string | null;
  /** The turns of a RUN that failed and may be tried again, as JSON: its part of the timeline. */
  turns?: string;
  /** Tokens that the model wrote; absent where there are none, or its engine does not count. */
  sampledTokens?: number;
  /** The most that the sandbox used, as its watchdog saw it. */
  sandboxPeak?: { memoryBytes: number; processes: number };
  verdict: Verdict | null;
};

export type WorkerSettings = {
  /** `none`: jobs that need a sandbox are refused. */
  driver: DriverName | "none";
  /** The Apptainer or Singularity program, by path or name. */
  apptainer: string;
  /** The bubblewrap program, by path or name. */
  bwrap: string;
  minIsolation: IsolationLevel;
  /** How often a start that fails for a passing reason is tried, within the time of one start. */
  startAttempts: number;
  /** The folder for sandboxes' cgroups; null: the watchdog alone keeps their limits. */
  cgroups: string | null;
  /** Private folder on local disk for sandboxes and what is bound into them. */
  dataDir: string;
  defaultImage: string | null;
  images: ImageSettings;
  sandbox: {
    writable: "tmpfs" | "overlay";
    startTimeoutMs: number;
    processes: number;
    openFiles: number;
    fileBytes: number;
    tmpfsBytes: number;
    memoryBytes: number;
    diskBytes: number;
  };
  engineCallTimeoutMs: number;
  /** 0: replies are not streamed. */
  engineStallMs: number;
  maxReplyBytes: number;
  maxOutcomeBytes: number;
  tasks: TaskSettings;
};
