/** Milliseconds since the epoch that never run backwards: a stepped system clock can't end a job. */
export interface Clock {
  nowMs(): number;
}

export function systemClock(): Clock {
  const startMs = Date.now() - performance.now();
  return { nowMs: () => Math.round(startMs + performance.now()) };
}
