/**
 * What becomes of rollouts that are too long. `penalty` is DAPO's soft one: nothing up to
 * `maxTokens - bufferTokens`, then falling in a line to -1 at `maxTokens`. `filter` leaves a rollout that was
 * cut off (by a limit of tokens, context or turns, or beyond `maxTokens`) out of its group's figures and
 * advantages, and says so.
 */
export type Overlong =
  | { mode: "keep" }
  | { mode: "filter"; maxTokens: number | null }
  | { mode: "penalty"; maxTokens: number; bufferTokens: number; factor: number };

/** Sampled tokens of a rollout, null where its engine did not count; and whether a limit cut it off. */
export type Length = { tokens: number | null; truncated: boolean };

/** What is added to the reward: 0, or less. */
export function lengthPenalty(overlong: Overlong, { tokens }: Length): number {
  if (overlong.mode !== "penalty" || tokens === null) return 0;
  const { maxTokens, bufferTokens, factor } = overlong;
  const beyond = tokens - (maxTokens - bufferTokens);
  if (beyond <= 0) return 0;
  return -factor * Math.min(1, bufferTokens === 0 ? 1 : beyond / bufferTokens);
}

/** Whether the rollout is left out of its group's figures. */
export function isFiltered(overlong: Overlong, { tokens, truncated }: Length): boolean {
  if (overlong.mode !== "filter") return false;
  if (truncated) return true;
  return overlong.maxTokens !== null && tokens !== null && tokens > overlong.maxTokens;
}
