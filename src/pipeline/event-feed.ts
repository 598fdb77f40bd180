import type { Job } from "../jobs/job.ts";

/** What becomes of jobs, for who listens now. It is no record: that is the log of finished jobs. */
export class EventFeed {
  readonly #listeners = new Set<(job: Job) => void>();

  publish(job: Job): void {
    for (const listener of this.#listeners) listener(job);
  }

  subscribe(listener: (job: Job) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }
}
