import type { Job } from "../jobs/job.ts";
import type { NewRow } from "../store/new-jobs.ts";
import { viewAccepted } from "./view.ts";

/**
 * Writes new rollouts as JSON, as `viewAccepted` has them, with `created`. They mostly differ in their ids and times
 * only, so the rest is written once.
 */
export class AcceptedText {
  #last: { job: Job; row: NewRow; middle: string } | null = null;

  of(job: Job, row: NewRow): string {
    if (this.#last === null || !isShownAlike(this.#last, { job, row })) {
      this.#last = { job, row, middle: middleOf(job, row) };
    }
    const { createdMs } = job;
    const lease = row.leaseMs === undefined ? "null" : `"${timeText(createdMs + row.leaseMs)}"`;
    const times = `"lease_until":${lease},"created_at":"${timeText(createdMs)}","finished_at":null`;
    return `{"id":${JSON.stringify(job.id)},${this.#last.middle},${times},"created":true}`;
  }
}

/** All between the id and the times. */
function middleOf(job: Job, row: NewRow): string {
  const {
    id: _id,
    lease_until: _lease,
    created_at: _created,
    finished_at: _finished,
    ...rest
  } = viewAccepted(job, row);
  return JSON.stringify(rest).slice(1, -1);
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

type Accepted = { job: Job; row: NewRow };

/** Whether views of two new jobs have the same between id and times. */
function isShownAlike(a: Accepted, b: Accepted): boolean {
  return (
    a.row.taskKind === b.row.taskKind &&
    a.row.labels === b.row.labels &&
    a.row.priority === b.row.priority &&
    a.row.rescore === b.row.rescore &&
    a.job.numAttempts === b.job.numAttempts &&
    a.job.stage === b.job.stage
  );
}
