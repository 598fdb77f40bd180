import { MAX_TIMER_MS } from "../lib/clock.ts";

/** The time that an engine lives in. */
export type EngineClock = {
  /** Units: milliseconds of the engine's time, from any beginning. */
  nowMs(): number;
  /** Calls back once, unless it is cancelled by what this returns. */
  after(ms: number, what: () => void): () => void;
  /** How many times faster than the caller's time it goes. */
  speed: number;
};

/** The machine's time, or that much faster. Who waits longer than a timer takes is woken too early, and waits again. */
export function engineClock(speed = 1): EngineClock {
  return {
    speed,
    nowMs: () => performance.now() * speed,
    after(ms, what) {
      const timer = setTimeout(what, Math.min(MAX_TIMER_MS, Math.ceil(ms / speed)));
      return () => clearTimeout(timer);
    },
  };
}
