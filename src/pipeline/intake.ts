import { ServiceError } from "../errors.ts";
import { createJob, type Job } from "../jobs/job.ts";
import type { NewJobRow } from "../store/new-jobs.ts";
import type { Store } from "../store/store.ts";
import type { Accepted, SchedulerParts, Submission } from "./parts.ts";

type IntakeParts = Pick<SchedulerParts, "store" | "clock" | "settings" | "room"> & {
  /** Whether the service takes no more work because it is stopping. */
  closed(): boolean;
  /** Of a new job, once it is durable. */
  tell(job: Job): void;
};

/** What is taken on, and what is refused; `insert` inside a tick only. */
export class Intake {
  readonly #parts: IntakeParts;

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  /**
   * Those of `submissions` that are new, where there is room for all of them.
   *
   * @throws ServiceError `id_conflict`, `queue_full`, `disk_full`, `shutting_down`
   */
  admit(submissions: Submission[]): Set<Submission> {
    const fresh = newAmong(this.#parts.store, submissions);
    this.expectRoom(fresh.size);
    return fresh;
  }

  /** @throws ServiceError `disk_full` */
  expectDisk(): void {
    if (this.#parts.room?.forWork() !== false) return;
    const mend =
      "free space on the disk of data_dir, or lower disk_floor_bytes; running rollouts go on";
    throw new ServiceError("disk_full", "the disk is nearly full", { mend });
  }

  /** @throws ServiceError `queue_full`, `disk_full`, `shutting_down` */
  expectRoom(count: number): void {
    if (this.#parts.closed()) throw new ServiceError("shutting_down", "the service is stopping");
    this.expectDisk();
    const { store, settings } = this.#parts;
    const unfinished = store.counts.total;
    if (unfinished + count <= settings.maxQueuedJobs) return;
    const message = `the queue is full (${unfinished} unfinished jobs)`;
    throw new ServiceError("queue_full", message, { mend: "submit again later" });
  }

  /**
   * Takes on those of `submissions` that are new, or none.
   *
   * @throws ServiceError as `admit`
   */
  submit(submissions: Submission[]): Accepted[] {
    const fresh = this.admit(submissions);
    const nowMs = this.#parts.clock.nowMs();
    const accepted = submissions.map((one) => {
      const job = fresh.has(one) ? createJob(one.job, nowMs) : null;
      return { id: one.job.id, created: job !== null, job, row: one.row };
    });
    this.#parts.store.insertJobs(accepted.filter(({ job }) => job !== null) as NewJobRow[]);
    for (const { job } of accepted) if (job) this.#parts.tell(job);
    return accepted;
  }

  /** A job of the service's own, for which there is room. Returns its `seq`. */
  insert({ job, row }: Submission): number {
    const created = createJob(job, this.#parts.clock.nowMs());
    this.#parts.tell(created);
    return this.#parts.store.insertJob(created, row);
  }
}

/**
 * Which of `submissions` are new; the others repeat what was accepted before, here or in the same request.
 *
 * @throws ServiceError `id_conflict`
 */
function newAmong(store: Store, submissions: Submission[]): Set<Submission> {
  const fresh = new Set<Submission>();
  const bodies = new Map<string, string>();
  for (const [index, submission] of submissions.entries()) {
    if (submission.madeId) {
      fresh.add(submission);
      continue;
    }
    const { id } = submission.job;
    const known = bodies.get(id) ?? store.bodyOf(id) ?? undefined;
    if (known === undefined) fresh.add(submission);
    else if (known !== submission.row.bodySha256) {
      throw new ServiceError("id_conflict", `rollout "${id}" exists with another body`, {
        field: `rollouts[${index}].id`,
        mend: "use a new id for a new rollout",
      });
    }
    bodies.set(id, submission.row.bodySha256);
  }
  return fresh;
}
