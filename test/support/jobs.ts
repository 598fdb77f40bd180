import { createJob, type Job, type Limits } from "../../src/jobs/job.ts";
import { type JobEvent, transition } from "../../src/jobs/transitions.ts";
import type { NewRow } from "../../src/store/new-jobs.ts";
import type { Store } from "../../src/store/store.ts";

export const LIMITS: Limits = { initMs: 100, runMs: 200, evalMs: 300, totalMs: 10_000 };

export const ROW: NewRow = {
  bodySha256: "sha",
  taskKind: "fake",
  usesSandbox: false,
  needsBackend: false,
  image: null,
  instance: "{}",
  options: "{}",
};

export const STARTED: JobEvent = { type: "stage_started" };
export const SUCCEEDED: JobEvent = { type: "stage_succeeded" };
export const CANCEL: JobEvent = { type: "end_requested", ending: "cancel" };
export const RECOVERED: JobEvent = { type: "recovered", maxCrashes: 2, alone: true };
export const VERDICT = { reward: 0.5, rule: "fake", reason: "The test said so." };

/** A job of time 1000 after `events`, of which each comes 10 ms later than the one before did. */
export function jobAfter(id: string, ...events: JobEvent[]): Job {
  let nowMs = 1000;
  return events.reduce(
    (job, event, index) => {
      nowMs += 10 * (index + 1);
      return transition(job, event, nowMs);
    },
    createJob({ id, limits: LIMITS, numAttempts: 1 }, 1000),
  );
}

/** What it takes to come to a verdict. */
export const TO_THE_END = [STARTED, SUCCEEDED, STARTED, SUCCEEDED, STARTED, SUCCEEDED];

/** Stores a job as it is after `events`. */
export function storeJob(
  to: Store,
  id: string,
  events: JobEvent[],
  row: Partial<NewRow> = {},
): number {
  return to.transaction(() => {
    const created = jobAfter(id);
    const seq = to.insertJob(created, { ...ROW, ...row });
    const job = jobAfter(id, ...events);
    if (events.length > 0)
      to.updateJob(seq, created, job, job.state === "succeeded" ? { verdict: VERDICT } : {});
    return seq;
  });
}
