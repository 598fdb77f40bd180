/**
 * A backend takes on what may come to so many times its memory. Few are at their longest together, and more often than
 * not some are over before; where it comes to too much the youngest wait (`isHeld`).
 */
const PLANNED_SHARE = 1.5;
/** So much of the memory may be in use; the rest is for what running calls sample. */
const HELD_SHARE = 0.95;

/** A context that is in memory, and by how much it is expected to grow yet. Units: tokens. */
export type Growing = { contextTokens: number; growthTokens: number };

/** Whether a backend may take on one more, beside those that live there. */
export function hasRoom(kvTokens: number, living: readonly Growing[], newcomer: Growing): boolean {
  return living.length === 0 || peakOf([...living, newcomer]) <= PLANNED_SHARE * kvTokens;
}

/**
 * Whether a context is among those that an engine's memory holds, the eldest first. Where they have outgrown it the
 * others wait, because if all went on each would find its prefix thrown out by another and be computed from its
 * beginning, turn after turn. The eldest goes on always, and one that is left alone for long does not count.
 */
export function isHeld<T extends { contextTokens: number }>(
  kvTokens: number,
  eldestFirst: Iterable<T>,
  one: T,
  isLeftAlone: (other: T) => boolean,
): boolean {
  let together = 0;
  for (const other of eldestFirst) {
    if (other === one && together === 0) return true;
    if (other !== one && isLeftAlone(other)) continue;
    together += other.contextTokens;
    if (together > HELD_SHARE * kvTokens) return false;
    if (other === one) return true;
  }
  return true;
}

/** The most that contexts come to together which grow at one pace and are gone at their ends. */
function peakOf(contexts: readonly Growing[]): number {
  const byEnd = contexts.toSorted((a, b) => a.growthTokens - b.growthTokens);
  let together = contexts.reduce((sum, { contextTokens }) => sum + contextTokens, 0);
  let peak = together;
  let grown = 0;
  for (const [gone, { contextTokens, growthTokens }] of byEnd.entries()) {
    together += (growthTokens - grown) * (byEnd.length - gone);
    grown = growthTokens;
    peak = Math.max(peak, together);
    together -= contextTokens + growthTokens;
  }
  return peak;
}
