import type { Job } from "../jobs/job.ts";
import type { NewRow } from "../store/new-jobs.ts";
import { viewAccepted } from "./view.ts";

/**
 * Writes new rollouts as JSON, as `viewAccepted` has them, with `created`. Those of a batch mostly differ in their ids
 * only, so the rest is written once.
 */
export class AcceptedText {
  #last: { job: Job; row: NewRow; rest: string } | null = null;

  of(job: Job, row: NewRow): string {
    if (this.#last === null || !isShownAlike(this.#last, { job, row })) {
      const { id: _id, ...rest } = { ...viewAccepted(job, row), created: true };
      this.#last = { job, row, rest: JSON.stringify(rest).slice(1) };
    }
    return `{"id":${JSON.stringify(job.id)},${this.#last.rest}`;
  }
}

type Accepted = { job: Job; row: NewRow };

/** All that a view of a new job is made from, besides its id. */
function isShownAlike(a: Accepted, b: Accepted): boolean {
  return (
    a.row.taskKind === b.row.taskKind &&
    a.row.labels === b.row.labels &&
    a.row.priority === b.row.priority &&
    a.row.leaseMs === b.row.leaseMs &&
    a.row.rescore === b.row.rescore &&
    a.job.createdMs === b.job.createdMs &&
    a.job.numAttempts === b.job.numAttempts &&
    a.job.stage === b.job.stage
  );
}
