import { ServiceError } from "../errors.ts";
import { createJob, type Job } from "../jobs/job.ts";
import { sees } from "../jobs/owner.ts";
import type { SubmittedBody } from "../store/job-table.ts";
import type { NewJobRow } from "../store/new-jobs.ts";
import type { Accepted, SchedulerParts, Submission } from "./parts.ts";

type IntakeParts = Pick<SchedulerParts, "store" | "clock" | "settings" | "room"> & {
  /** Whether the service takes no more work because it is stopping. */
  closed(): boolean;
  /** Runs `work` inside the next tick; resolves with its result after the commit. */
  operate<T>(work: () => T): Promise<T>;
  /** Says that so much has come for the next tick. */
  joined(count: number): void;
  /** Of a new job, once it is durable. */
  tell(job: Job): void;
};

type Request = {
  submissions: Submission[];
  resolve(accepted: Accepted[]): void;
  reject(error: unknown): void;
};

/** By the ids that clients chose. */
type Bodies = Map<string, SubmittedBody>;

/** What is taken on, and what is refused; `insert` inside a tick only. */
export class Intake {
  readonly #parts: IntakeParts;
  /** Those that wait for the next tick. */
  #requests: Request[] = [];

  constructor(parts: IntakeParts) {
    this.#parts = parts;
  }

  /**
   * Those of `submissions` that are new, where there is room for all of them.
   *
   * @throws ServiceError `id_conflict`, `queue_full`, `disk_full`, `shutting_down`
   */
  admit(submissions: Submission[]): Set<Submission> {
    return this.#admit(submissions, new Map(), 0);
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
   * Takes on those of `submissions` that are new, or none. Requests of one tick are taken on together, because rows
   * that are written together cost half.
   *
   * @throws ServiceError as `admit`
   */
  submit(submissions: Submission[]): Promise<Accepted[]> {
    return new Promise((resolve, reject) => {
      this.#requests.push({ submissions, resolve, reject });
      this.#parts.joined(submissions.length);
      if (this.#requests.length === 1) this.#plan(this.#requests);
    });
  }

  async #plan(requests: Request[]): Promise<void> {
    try {
      const answer = await this.#parts.operate(() => {
        this.#requests = [];
        return this.#takeOn(requests);
      });
      answer();
    } catch (error) {
      this.#requests = [];
      for (const { reject } of requests) reject(error);
    }
  }

  /** Returns what tells each request what became of it. */
  #takeOn(requests: Request[]): () => void {
    const nowMs = this.#parts.clock.nowMs();
    const news: NewJobRow[] = [];
    const bodies: Bodies = new Map();
    const answers = requests.map(({ submissions, resolve, reject }) => {
      try {
        const fresh = this.#admit(submissions, bodies, news.length);
        const accepted = submissions.map((one): Accepted => {
          if (!fresh.has(one)) return { id: one.job.id, created: false, job: null };
          const job = createJob(one.job, nowMs);
          news.push({ job, row: one.row });
          return { id: job.id, created: true, job };
        });
        return () => resolve(accepted);
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        return () => reject(error);
      }
    });
    this.#parts.store.insertJobs(news);
    for (const { job } of news) this.#parts.tell(job);
    return () => {
      for (const answer of answers) answer();
    };
  }

  /** @param bodies of what is taken on before in the same tick, and not written yet, as are `ahead` jobs */
  #admit(submissions: Submission[], bodies: Bodies, ahead: number): Set<Submission> {
    const own: Bodies = new Map();
    const known = (id: string) =>
      own.get(id) ?? bodies.get(id) ?? this.#parts.store.submissionOf(id);
    const fresh = newAmong(submissions, known, own);
    this.expectRoom(fresh.size + ahead);
    for (const [id, body] of own) bodies.set(id, body);
    return fresh;
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
 * @param own is given the bodies of `submissions`
 * @throws ServiceError `id_conflict`
 */
function newAmong(
  submissions: Submission[],
  knownBody: (id: string) => SubmittedBody | null,
  own: Bodies,
): Set<Submission> {
  const fresh = new Set<Submission>();
  for (const submission of submissions) {
    if (submission.madeId) {
      fresh.add(submission);
      continue;
    }
    const { id } = submission.job;
    const known = knownBody(id);
    const { bodySha256: sha256, client = "" } = submission.row;
    if (known === null) fresh.add(submission);
    // Another client's is told like another body, and nothing of it.
    else if (known.sha256 !== sha256 || !sees(client, known.client)) {
      throw new ServiceError("id_conflict", `rollout "${id}" exists with another body`, {
        field: submission.place ? `${submission.place}.id` : "id",
        mend: "use a new id for a new rollout",
      });
    }
    own.set(id, known ?? { sha256, client });
  }
  return fresh;
}
