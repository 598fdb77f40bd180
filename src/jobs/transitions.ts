import { type ErrorBody, type ErrorDetails, errorBodyOf } from "../errors.ts";
import type { Ending, Job, Stage, Visit } from "./job.ts";
import { activeLeftMs, heldMs, isFinal, isPaused, NEVER_MS, stageLimitMs } from "./job.ts";
import { backoffMs, isWorthRetrying } from "./retry.ts";

export type JobEvent =
  | { type: "stage_started" }
  /** So long in all the service has made it wait in this stage: that is no work of its own. */
  | { type: "held_back"; ms: number }
  | { type: "stage_succeeded" }
  | { type: "stage_failed"; error: ErrorBody }
  /** While the job waited for the stage that was to work in it. */
  | { type: "sandbox_lost"; error: ErrorBody }
  /**
   * It has used up what it may do for its batch, or the batch is over: it waits for the next one. `alive` where it
   * stays in a thread at its turn; otherwise only its record does.
   */
  | { type: "paused"; alive: boolean }
  /** Another batch goes on with it, with what was left of its time when it was paused. */
  | { type: "continued"; leftMs: number }
  /** A cancel, a passed deadline or a shutdown: the first rung of the ladder. */
  | { type: "end_requested"; ending: Ending; reason?: string }
  /** Its thread is gone, and other jobs that were in it may be the reason: it starts anew, and none of its attempts is used up. */
  | { type: "thread_lost"; blocked?: boolean }
  /** The service starts and finds the job as its predecessor left it; `alone`: no other one was active. */
  | { type: "recovered"; maxCrashes: number; alone: boolean };

/** Services that are restarted again and again must not make a job's record grow. */
const MAX_VISITS = 90;

const NEXT_STAGE: Record<Stage, Stage | null> = { init: "run", run: "eval", eval: null };

/**
 * The one place that decides what a job becomes. Pure: the job is not changed, a new one is returned.
 *
 * @throws Error when the event can't happen in this state: that is a bug of the caller.
 */
export function transition(job: Job, event: JobEvent, nowMs: number): Job {
  switch (event.type) {
    case "stage_started":
      expect(job, "pending", event);
      return {
        ...settle(job, nowMs),
        state: "active",
        visits: entered(job, nowMs),
        notBeforeMs: null,
        stageDeadlineMs: stageDeadlineMs(job, nowMs),
      };
    case "held_back":
      expect(job, "active", event);
      return holdBack(job, event.ms);
    case "stage_succeeded":
      expect(job, "active", event);
      if (job.ending !== null) return conclude(job, nowMs);
      return advance(settle(job, nowMs), nowMs);
    case "stage_failed":
      expect(job, "active", event);
      // A thread that does not run ends nothing in time: that is not the job's limit.
      if (job.ending === "deadline" && event.error.details?.blocked === true) {
        return failAttempt(settle({ ...job, ending: null }, nowMs), event.error, nowMs);
      }
      if (job.ending !== null) return conclude(job, nowMs, event.error.details);
      return failAttempt(settle(job, nowMs), event.error, nowMs);
    case "thread_lost":
      expect(job, "active", event);
      if (job.ending !== null && !(job.ending === "deadline" && event.blocked)) {
        return conclude(job, nowMs);
      }
      return { ...startAgain(settle(job, nowMs), nowMs), crashes: job.crashes + 1 };
    case "sandbox_lost":
      expect(job, "pending", event);
      return failAttempt(settle(job, nowMs), event.error, nowMs);
    case "paused":
      return pause(job, event.alive, nowMs);
    case "continued":
      if (!isPaused(job)) throw new Error(`job ${job.id}: continued, but it is not paused`);
      return { ...job, notBeforeMs: null, sinceMs: nowMs, deadlineMs: nowMs + event.leftMs };
    case "end_requested":
      return requestEnd(job, event, nowMs);
    case "recovered":
      return recover(job, event, nowMs);
  }
}

function stageDeadlineMs(job: Job, nowMs: number): number {
  const leftMs = activeLeftMs(job) ?? Number.POSITIVE_INFINITY;
  const stageLeftMs = stageLimitMs(job) - spentBeforeMs(job);
  return Math.min(nowMs + Math.min(stageLeftMs, leftMs), job.deadlineMs);
}

/** The stage's limit and that of all work end later by as much; the total limit stays. */
function holdBack(job: Job, ms: number): Job {
  const last = job.visits.at(-1);
  const moreMs = Math.round(ms) - heldMs(job);
  if (!last || moreMs <= 0) return job;
  const [attempt, stage, queuedMs, startedMs, endedMs] = last;
  const visit: Visit = [attempt, stage, queuedMs, startedMs, endedMs, heldMs(job) + moreMs];
  const latestMs = Math.min((job.stageDeadlineMs ?? NEVER_MS) + moreMs, job.deadlineMs);
  return { ...job, visits: [...job.visits.slice(0, -1), visit], stageDeadlineMs: latestMs };
}

/** The work of this attempt in this stage before it was paused. */
function spentBeforeMs({ visits, attempt, stage }: Job): number {
  let spentMs = 0;
  for (const [of, where, , startedMs, endedMs, waitedMs = 0] of visits) {
    if (of !== attempt || where !== stage || endedMs === null) continue;
    spentMs += Math.max(0, endedMs - startedMs - waitedMs);
  }
  return spentMs;
}

function pause(job: Job, alive: boolean, nowMs: number): Job {
  if (isFinal(job) || job.ending !== null) {
    throw new Error(`job ${job.id}: paused in ${job.stage}/${job.state}`);
  }
  const settled = settle(job, nowMs);
  const held: Job = alive
    ? { ...settled, state: "pending", stageDeadlineMs: null }
    : startAgain(settled, nowMs);
  return { ...held, notBeforeMs: NEVER_MS, deadlineMs: NEVER_MS };
}

type EndRequest = Extract<JobEvent, { type: "end_requested" }>;

function requestEnd(job: Job, { ending, reason }: EndRequest, nowMs: number): Job {
  const endingReason = reason ?? null;
  if (isFinal(job)) return job;
  if (job.state === "pending") {
    // A shutdown leaves a waiting job where it is: the next start goes on with it.
    return ending === "shutdown" ? job : conclude({ ...job, ending, endingReason }, nowMs);
  }
  // A cancel is what the client asked for, so it also wins over an end that is under way.
  if (job.ending !== null && ending !== "cancel") return job;
  return { ...job, ending, endingReason };
}

/** Ends a job for the reason noted in `ending`. A cancel that races the end of a stage wins. */
function conclude(job: Job, nowMs: number, details?: ErrorDetails): Job {
  const settled = settle(job, nowMs);
  switch (job.ending) {
    case "cancel":
      return finish(settled, "cancelled", cancelError(job), nowMs);
    case "deadline":
      return failAttempt(settled, deadlineError(job, details), nowMs);
    case "shutdown":
      return startAgain(settled, nowMs);
    case null:
      throw new Error(`job ${job.id}: an end was confirmed that nobody asked for`);
  }
}

/** Ends a job with an error, or leads it back to where it can be tried again. */
function failAttempt(job: Job, error: ErrorBody, nowMs: number): Job {
  const waitMs = backoffMs(job);
  const inTime = nowMs + waitMs < job.deadlineMs && (activeLeftMs(job) ?? 1) > 0;
  const attemptsLeft = job.failures.length + 1 < job.numAttempts;
  if (!inTime || !attemptsLeft || !isWorthRetrying(error)) {
    return finish(job, "failed", error, nowMs);
  }
  const failure = { attempt: job.attempt, stage: job.stage, atMs: nowMs, error };
  return {
    ...startAgain(job, nowMs),
    failures: [...job.failures, failure],
    notBeforeMs: nowMs + waitMs,
  };
}

function advance(job: Job, nowMs: number): Job {
  const stage = NEXT_STAGE[job.stage];
  if (stage === null) return finish(job, "succeeded", null, nowMs);
  return { ...job, stage, state: "pending", sinceMs: nowMs, stageDeadlineMs: null };
}

function recover(job: Job, event: Extract<JobEvent, { type: "recovered" }>, nowMs: number): Job {
  if (isFinal(job)) return job;
  const wasActive = job.state === "active";
  const crashes = job.crashes + (wasActive ? 1 : 0);
  if (isPaused(job)) return job.stage === "init" ? job : pause(job, false, nowMs);
  if (job.ending === "cancel") return conclude({ ...job, crashes }, nowMs);
  // Beside others it is only suspected: see `Suspects`.
  if (crashes > event.maxCrashes && wasActive && event.alone) {
    const message = `the service died ${crashes} times while this job was active, at last while no other was; it is not tried again`;
    return finish(
      { ...settle(job, nowMs), crashes },
      "failed",
      errorBodyOf("crash_limit", message),
      nowMs,
    );
  }
  if (!wasActive && firstStageLeft(job) === job.stage) {
    // The system's clock may have been set meanwhile, so a time to wait for is not carried over.
    return job.notBeforeMs === null ? job : { ...job, notBeforeMs: null };
  }
  // The sandbox died with the service, so a job that waited for RUN starts anew as well.
  return { ...startAgain(job, nowMs), crashes };
}

/** The earliest stage whose result is lost with the attempt. */
function firstStageLeft({ stage, evalFromRecord }: Job): Stage {
  return stage === "eval" && evalFromRecord ? "eval" : "init";
}

/** A new attempt, with what still stands of this one. */
function startAgain(job: Job, nowMs: number): Job {
  return {
    ...job,
    stage: firstStageLeft(job),
    state: "pending",
    attempt: job.attempt + 1,
    notBeforeMs: null,
    ending: null,
    endingReason: null,
    sinceMs: nowMs,
    stageDeadlineMs: null,
  };
}

function finish(job: Job, state: Job["state"], error: ErrorBody | null, nowMs: number): Job {
  const over = { sinceMs: nowMs, stageDeadlineMs: null, notBeforeMs: null, finishedMs: nowMs };
  return { ...job, state, error, ...over };
}

/** Books the time since the last change on the stage's queue or on its work. */
function settle(job: Job, nowMs: number): Job {
  // A pause is neither queue nor work.
  const elapsedMs = isPaused(job) ? 0 : Math.max(0, nowMs - job.sinceMs);
  const timing = job.timings[job.stage];
  const waitedMs = job.state === "pending" ? elapsedMs : Math.min(elapsedMs, heldMs(job));
  const booked = {
    queuedMs: timing.queuedMs + waitedMs,
    activeMs: timing.activeMs + elapsedMs - waitedMs,
  };
  const visits = job.state === "active" ? left(job.visits, nowMs) : job.visits;
  return { ...job, sinceMs: nowMs, timings: { ...job.timings, [job.stage]: booked }, visits };
}

function entered({ attempt, stage, sinceMs, visits }: Job, nowMs: number): Visit[] {
  return [...visits.slice(1 - MAX_VISITS), [attempt, stage, sinceMs, nowMs, null]];
}

function left(visits: Visit[], nowMs: number): Visit[] {
  const last = visits.at(-1);
  if (!last) return visits;
  const [attempt, stage, queuedMs, startedMs, , ...held] = last;
  return [...visits.slice(0, -1), [attempt, stage, queuedMs, startedMs, nowMs, ...held]];
}

function expect(job: Job, state: Job["state"], event: JobEvent): void {
  if (job.state !== state) {
    throw new Error(`job ${job.id}: ${event.type} in ${job.stage}/${job.state}, expected ${state}`);
  }
}

/** Whose time ran out says who has to act: only a RUN that takes too long is the policy's doing. */
const DEADLINE_BOUNDARY = { init: "sandbox", run: "policy", eval: "verifier" } as const;

function deadlineError(job: Job, details?: ErrorDetails): ErrorBody {
  const boundary = job.state === "pending" ? "service" : DEADLINE_BOUNDARY[job.stage];
  const during = typeof details?.during === "string" ? `, during ${details.during}` : "";
  const message = `${describe(job, `ended by ${passedLimit(job)}`)}${during}`;
  const error = errorBodyOf("deadline_exceeded", message);
  const placed = details === undefined ? {} : { details };
  return { ...error, boundary, retryable: boundary !== "policy", ...placed };
}

function passedLimit(job: Job): string {
  const { stageDeadlineMs, deadlineMs, sinceMs, limits } = job;
  if (stageDeadlineMs === null || stageDeadlineMs === deadlineMs) {
    return `its limit of ${limits.totalMs} ms in total`;
  }
  const stageMs = stageLimitMs(job);
  if (stageDeadlineMs - sinceMs - heldMs(job) < stageMs - spentBeforeMs(job))
    return `its limit of ${limits.activeMs} ms of work`;
  return `the stage's limit of ${stageMs} ms`;
}

function cancelError(job: Job): ErrorBody {
  const why = job.endingReason === null ? "" : `: ${job.endingReason}`;
  return errorBodyOf("cancelled", `${describe(job, "cancelled")}${why}`);
}

function describe(job: Job, what: string): string {
  return `${what}, while ${job.state === "pending" ? "waiting for" : "in"} ${job.stage.toUpperCase()}`;
}
