import { type Every, everyInterval } from "./parts.ts";
import type { Pool, PoolWorker } from "./pool.ts";

/** Pings that a thread may leave unanswered. */
const MAX_UNANSWERED = 4;

/**
 * Finds threads whose event loop is stuck. It counts its own pings and not time: a service that was stopped and
 * goes on (SIGSTOP, a suspended machine) must not take its threads for dead.
 */
export class Heartbeat implements Disposable {
  readonly #timer: Disposable;

  /** @param stallMs how long a thread may give no sign of life */
  constructor(
    pools: Pool[],
    stallMs: number,
    onStuck: (worker: PoolWorker) => void,
    every: Every = everyInterval,
  ) {
    const beat = () => {
      for (const worker of pools.flatMap((pool) => pool.workers)) {
        if (worker.unanswered >= MAX_UNANSWERED) onStuck(worker);
        worker.unanswered++;
        worker.thread.post([{ type: "ping" }]);
      }
    };
    this.#timer = every(stallMs / MAX_UNANSWERED, beat);
  }

  [Symbol.dispose](): void {
    this.#timer[Symbol.dispose]();
  }
}
