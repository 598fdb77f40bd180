import type { ErrorBody } from "../errors.ts";

export const STAGES = ["init", "run", "eval"] as const;
export type Stage = (typeof STAGES)[number];

export const STATES = ["pending", "active", "succeeded", "failed", "cancelled"] as const;
export type State = (typeof STATES)[number];

/** Why an active job is being ended. It stays active until its worker confirms. */
export type Ending = "cancel" | "deadline" | "shutdown";

/** Time of one stage, summed over attempts. Units: milliseconds. */
export type StageTiming = { queuedMs: number; activeMs: number };

/**
 * Durations that a job may take. `totalMs` counts from submission, queues included; `activeMs`, where it is
 * set, is for the work of all stages and attempts together, queues left out.
 */
export type Limits = {
  initMs: number;
  runMs: number;
  evalMs: number;
  totalMs: number;
  activeMs?: number;
};

/**
 * One stay in a stage that began: since when the job waited for it, and its work. No end: it works there, or the
 * service died with it. Units: milliseconds of the service's clock; `heldMs` is a duration, of its work that was
 * none because the service made it wait.
 */
export type Visit = [
  attempt: number,
  stage: Stage,
  queuedMs: number,
  startedMs: number,
  endedMs: number | null,
  heldMs?: number,
];

/** An attempt that failed and was followed by another one. */
export type AttemptFailure = { attempt: number; stage: Stage; atMs: number; error: ErrorBody };

/**
 * What decides a job's life: everything that `transition` reads or writes. The rest of the row (instance,
 * options, trajectory) is data that travels with it.
 *
 * Units: `...Ms` times are absolute, in milliseconds of the service's clock.
 */
export type Job = {
  id: string;
  stage: Stage;
  state: State;
  /** Counts the times the job entered the pipeline; an answer of an older attempt is refused. */
  attempt: number;
  /** How often the service died while the job was active. */
  crashes: number;
  /** How often the job may fail for reasons that are not its own; the last failure is final. */
  numAttempts: number;
  /** The failures that were followed by another attempt, oldest first. */
  failures: AttemptFailure[];
  /** A job that failed waits until then before it is tried again; null where it may start; see `isPaused`. */
  notBeforeMs: number | null;
  ending: Ending | null;
  /** What to say about the end besides, where its asker gave a reason. */
  endingReason: string | null;
  limits: Limits;
  /** Whether EVAL needs only what RUN recorded, so that it can be done again without INIT and RUN. */
  evalFromRecord: boolean;
  createdMs: number;
  /** When the present state began. */
  sinceMs: number;
  /** When the present stage must be over; set while active. */
  stageDeadlineMs: number | null;
  /** When the job as a whole must be over. */
  deadlineMs: number;
  timings: Record<Stage, StageTiming>;
  /** Where it was when, the oldest first; of many only the last ones. */
  visits: Visit[];
  error: ErrorBody | null;
  finishedMs: number | null;
};

export type NewJob = {
  id: string;
  limits: Limits;
  numAttempts: number;
  evalFromRecord?: boolean;
  /** EVAL for a job that scores again what another job's RUN recorded. */
  stage?: "init" | "eval";
};

/** A job as it is accepted: waiting for its first stage. */
export function createJob(
  { id, limits, numAttempts, evalFromRecord = false, stage = "init" }: NewJob,
  nowMs: number,
): Job {
  return {
    id,
    stage,
    state: "pending",
    attempt: 1,
    crashes: 0,
    numAttempts,
    failures: [],
    notBeforeMs: null,
    ending: null,
    endingReason: null,
    limits,
    evalFromRecord,
    createdMs: nowMs,
    sinceMs: nowMs,
    stageDeadlineMs: null,
    deadlineMs: nowMs + limits.totalMs,
    timings: {
      init: { queuedMs: 0, activeMs: 0 },
      run: { queuedMs: 0, activeMs: 0 },
      eval: { queuedMs: 0, activeMs: 0 },
    },
    visits: [],
    error: null,
    finishedMs: null,
  };
}

export function isFinal(job: Pick<Job, "state">): boolean {
  return job.state !== "pending" && job.state !== "active";
}

/** In place of a time that does not come by itself. Units: milliseconds. */
export const NEVER_MS = Number.MAX_SAFE_INTEGER;

/** Whether it waits for another batch to go on with it. No time of its own runs meanwhile. */
export function isPaused({ state, notBeforeMs }: Pick<Job, "state" | "notBeforeMs">): boolean {
  return state === "pending" && notBeforeMs === NEVER_MS;
}

/** How long a job that works has been made to wait in its stage. */
export function heldMs({ state, visits }: Pick<Job, "state" | "visits">): number {
  return state === "active" ? (visits.at(-1)?.[5] ?? 0) : 0;
}

export function stageLimitMs(job: Job): number {
  const { initMs, runMs, evalMs } = job.limits;
  return { init: initMs, run: runMs, eval: evalMs }[job.stage];
}

/** What is left of the time for the work of all stages; null where that has no limit. */
export function activeLeftMs({ limits, timings }: Job): number | null {
  if (limits.activeMs === undefined) return null;
  const { init, run, eval: evaluation } = timings;
  return limits.activeMs - init.activeMs - run.activeMs - evaluation.activeMs;
}
