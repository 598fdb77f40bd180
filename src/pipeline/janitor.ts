import type { Clock } from "../lib/clock.ts";
import type { Store } from "../store/store.ts";
import type { Log } from "../telemetry/log.ts";

/** Between two looks, and between two steps while there is something to do. */
const LOOK_MS = 10_000;
const STEP_MS = 50;
const STEP_JOBS = 200;

export type Keep = {
  /** How long a finished job is kept. */
  ms: number;
  /** Size of the database above which the oldest results go. */
  bytes: number;
  /** How long after its end a batch keeps what another one may take over. */
  carryMs: number;
};

type JanitorParts = { store: Store; clock: Clock; log: Log; keep: Keep };

/** Removes old results in small steps, so that nobody waits for it. */
export class Janitor implements Disposable {
  readonly #parts: JanitorParts;
  #timer: Timer;
  removed = 0;

  constructor(parts: JanitorParts) {
    this.#parts = parts;
    this.#timer = setTimeout(() => this.#look(), LOOK_MS);
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  /** One step; false when there was nothing to do. */
  step(): boolean {
    const { store, clock, keep } = this.#parts;
    const tooLarge = store.retention.usedBytes() > keep.bytes;
    const beforeMs = tooLarge ? clock.nowMs() : clock.nowMs() - keep.ms;
    const carriedMs = clock.nowMs() - keep.carryMs;
    const [jobs, others] = store.transaction(() => [
      store.retention.remove(beforeMs, carriedMs, STEP_JOBS),
      store.groupRetention.remove(beforeMs, carriedMs, STEP_JOBS),
    ]);
    if (jobs + others > 0) store.shrink();
    this.removed += jobs;
    return jobs + others > 0;
  }

  #look(): void {
    let more = false;
    try {
      more = this.step();
    } catch (error) {
      // On a full disk there is no room for the journal of a removal either; later there may be.
      this.#parts.log.error("old results could not be removed", { problem: String(error) });
    }
    this.#timer = setTimeout(() => this.#look(), more ? STEP_MS : LOOK_MS);
  }
}
