import type { Job } from "../jobs/job.ts";
import type { JobRow } from "./tables.ts";

/** The columns of a job's life, as `transition` left it. */
export type JobColumns = Pick<
  JobRow,
  | "stage"
  | "state"
  | "attempt"
  | "crashes"
  | "ending"
  | "since_ms"
  | "stage_deadline_ms"
  | "init_queued_ms"
  | "init_active_ms"
  | "run_queued_ms"
  | "run_active_ms"
  | "eval_queued_ms"
  | "eval_active_ms"
  | "error"
  | "finished_ms"
  | "failures"
  | "ending_reason"
  | "not_before_ms"
  | "visits"
>;

export function toJob(row: JobRow): Job {
  return {
    id: row.id,
    stage: row.stage,
    state: row.state,
    attempt: row.attempt,
    crashes: row.crashes,
    numAttempts: row.num_attempts,
    failures: row.failures === null ? [] : JSON.parse(row.failures),
    notBeforeMs: row.not_before_ms,
    ending: row.ending,
    endingReason: row.ending_reason,
    limits: JSON.parse(row.limits),
    evalFromRecord: row.eval_from_record === 1,
    createdMs: row.created_ms,
    sinceMs: row.since_ms,
    stageDeadlineMs: row.stage_deadline_ms,
    deadlineMs: row.deadline_ms,
    timings: {
      init: { queuedMs: row.init_queued_ms, activeMs: row.init_active_ms },
      run: { queuedMs: row.run_queued_ms, activeMs: row.run_active_ms },
      eval: { queuedMs: row.eval_queued_ms, activeMs: row.eval_active_ms },
    },
    visits: row.visits === null ? [] : JSON.parse(row.visits),
    error: row.error === null ? null : JSON.parse(row.error),
    finishedMs: row.finished_ms,
  };
}

export function toColumns(job: Job): JobColumns {
  return {
    stage: job.stage,
    state: job.state,
    attempt: job.attempt,
    crashes: job.crashes,
    ending: job.ending,
    ending_reason: job.endingReason,
    since_ms: job.sinceMs,
    stage_deadline_ms: job.stageDeadlineMs,
    init_queued_ms: job.timings.init.queuedMs,
    init_active_ms: job.timings.init.activeMs,
    run_queued_ms: job.timings.run.queuedMs,
    run_active_ms: job.timings.run.activeMs,
    eval_queued_ms: job.timings.eval.queuedMs,
    eval_active_ms: job.timings.eval.activeMs,
    error: job.error === null ? null : JSON.stringify(job.error),
    finished_ms: job.finishedMs,
    failures: job.failures.length === 0 ? null : JSON.stringify(job.failures),
    not_before_ms: job.notBeforeMs,
    visits: job.visits.length === 0 ? null : JSON.stringify(job.visits),
  };
}
