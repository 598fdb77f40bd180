import type { EngineClock } from "../../src/simulator/engine-clock.ts";

type Timer = { ms: number; what: () => void };

/** Time that goes by at once: from one timer to the next, as soon as all promises between have settled. */
export class VirtualClock implements EngineClock {
  readonly speed = 1;
  readonly #timers = new Set<Timer>();
  #nowMs = 0;

  nowMs(): number {
    return this.#nowMs;
  }

  after(ms: number, what: () => void): () => void {
    const timer = { ms: this.#nowMs + ms, what };
    this.#timers.add(timer);
    return () => this.#timers.delete(timer);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.after(ms, resolve));
  }

  /** Until `work` is done. Fails where it waits for nothing. */
  async play<T>(work: Promise<T>): Promise<T> {
    let over = false;
    const settled = work.finally(() => {
      over = true;
    });
    settled.catch(() => {});
    for (;;) {
      await new Promise(setImmediate);
      if (over) return settled;
      const [next] = [...this.#timers].sort((a, b) => a.ms - b.ms);
      if (!next) throw new Error("nothing is going to happen any more");
      this.#timers.delete(next);
      this.#nowMs = Math.max(this.#nowMs, next.ms);
      next.what();
    }
  }
}
