/** How much earlier a job is taken for one point of priority. Units: milliseconds. */
export const PRIORITY_STEP_MS = 60_000;

/**
 * A waiting job's place among those of its client: smaller goes first. A point of priority is worth a minute
 * of waiting, so that a stream of urgent work delays other work by a bounded time and never for good.
 */
export function queueKey(createdMs: number, priority: number): number {
  return createdMs - priority * PRIORITY_STEP_MS;
}
