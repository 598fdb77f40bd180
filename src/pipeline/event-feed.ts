import type { Job } from "../jobs/job.ts";

export type LiveEvent = Pick<Job, "id" | "stage" | "state" | "attempt">;

/** What becomes of jobs, for who listens now. It is no record: that is the log of finished jobs. */
export class EventFeed {
  readonly #listeners = new Set<(event: LiveEvent) => void>();

  publish({ id, stage, state, attempt }: Job): void {
    for (const listener of this.#listeners) listener({ id, stage, state, attempt });
  }

  subscribe(listener: (event: LiveEvent) => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }
}
