/** Of its memory so much is planned with; the rest is for what grows beyond what is expected. */
const PLANNED_SHARE = 0.9;

type Memory = {
  /** For keys and values; null where it is not known. */
  kvTokens: number | null;
  live: number;
  /** Tokens of the contexts of those that live there. */
  contextTokens: number;
};

/**
 * Whether the contexts of one more trajectory fit beside those that live there. Trajectories that together
 * outgrow the memory throw each other's prefixes out of it between their turns, and each turn is then computed
 * from its beginning. They do not peak together: of what each is expected to grow yet, half is counted.
 *
 * @param finalContext how long contexts are in the end, on average
 */
export function hasRoom({ kvTokens, live, contextTokens }: Memory, finalContext: number): boolean {
  if (kvTokens === null || live === 0) return true;
  const growth = Math.max(0, live * finalContext - contextTokens) / 2;
  return contextTokens + growth + finalContext / 2 <= PLANNED_SHARE * kvTokens;
}
