import type { BatchState } from "../jobs/batch.ts";
import type { GroupState } from "../jobs/group.ts";
import type { Job } from "../jobs/job.ts";

/** A group or batch that is over. */
export type GroupEnd =
  | { kind: "group"; state: GroupState; informative: boolean | null }
  | { kind: "batch"; state: BatchState };

/** What becomes of jobs, groups and batches, for who listens now. It is no record: those are the logs of ends. */
export class EventFeed {
  readonly #listeners = new Set<(job: Job) => void>();
  readonly #groupListeners = new Set<(end: GroupEnd) => void>();

  publish(job: Job): void {
    for (const listener of this.#listeners) listener(job);
  }

  publishEnd(end: GroupEnd): void {
    for (const listener of this.#groupListeners) listener(end);
  }

  subscribe(listener: (job: Job) => void): Disposable {
    return subscribed(this.#listeners, listener);
  }

  subscribeEnds(listener: (end: GroupEnd) => void): Disposable {
    return subscribed(this.#groupListeners, listener);
  }
}

function subscribed<T>(listeners: Set<T>, listener: T): Disposable {
  listeners.add(listener);
  return { [Symbol.dispose]: () => void listeners.delete(listener) };
}
