import type { Job } from "../jobs/job.ts";
import { readLife } from "../jobs/life.ts";
import type { JobHead } from "./tables.ts";

export function toJob(row: JobHead): Job {
  const life = readLife(row.life);
  return {
    id: row.id,
    stage: row.stage,
    state: row.state,
    attempt: row.attempt,
    crashes: row.crashes,
    numAttempts: life.numAttempts,
    failures: life.failures,
    notBeforeMs: row.not_before_ms,
    ending: row.ending,
    endingReason: life.endingReason,
    limits: life.limits,
    evalFromRecord: row.eval_from_record > 0,
    createdMs: row.created_ms,
    sinceMs: row.since_ms,
    stageDeadlineMs: row.stage_deadline_ms,
    deadlineMs: row.deadline_ms,
    timings: life.timings,
    visits: life.visits,
    error: row.error === null ? null : JSON.parse(row.error),
    finishedMs: row.finished_ms,
  };
}
