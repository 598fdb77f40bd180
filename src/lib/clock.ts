/** Milliseconds since the epoch that never run backwards: a stepped system clock can't end a job. */
export interface Clock {
  nowMs(): number;
}

export function systemClock(): Clock {
  const startMs = Date.now() - performance.now();
  return { nowMs: () => Math.round(startMs + performance.now()) };
}

/** The longest that a timer takes, 24 days: a longer one would be over at once. */
export const MAX_TIMER_MS = 2 ** 31 - 1;
