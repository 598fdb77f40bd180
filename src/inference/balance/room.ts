/**
 * A backend takes on what may come to so many times its memory. Few are at their longest together, and more often than
 * not some are over before; where it comes to too much some wait (`held`).
 */
const PLANNED_SHARE = 2;
/** So much of the memory may be in use; the rest is for what running calls sample, and for what others have left behind. */
const HELD_SHARE = 0.9;
/** Many times as long as turns wait where all goes well. */
const MAX_WAITED_MS = 900_000;

/** A context that lives on a backend. Units: tokens. */
export type Context = {
  contextTokens: number;
  /** Of its first prompt, which its siblings there have in common with it. */
  firstContext: number;
  group: string | null;
};

/** And by how much it is expected to grow yet. */
export type Growing = Context & { growthTokens: number };

/** Whether a backend may take on one more, beside those that live there. */
export function hasRoom(kvTokens: number, living: readonly Growing[], newcomer: Growing): boolean {
  return living.length === 0 || peakOf([...living, newcomer]) <= PLANNED_SHARE * kvTokens;
}

/** Whether all contexts of a backend are held, which is quickly told. */
export function fitsWhole(kvTokens: number, contextTokens: number): boolean {
  return contextTokens <= HELD_SHARE * kvTokens;
}

/** And how far it has come. */
export type Resident = Context & {
  sampledTokens: number;
  /** Whether its turn waits for room, so that its context may be thrown out. */
  isOut: boolean;
  /** How long its turns have waited in all. Units: milliseconds. */
  waitedMs: number;
};

/**
 * The contexts that an engine's memory holds, which has the first prompt of siblings once. Where they have outgrown it the
 * others wait, because if all went on each would find its prefix thrown out by another and be computed from its
 * beginning, turn after turn.
 *
 * While more rollouts are to begin the eldest go on: what has begun is over soon, and nearly nothing is computed twice. When
 * no more come, all that counts is when the last is over, and that is one of those that have come least far: they go on, and
 * who has sampled most waits. So all come to their ends together. There who has waited for long in all comes first, the
 * eldest of them before the others, so that nobody starves. The first of all goes on even where it is larger than the memory.
 */
export function held<T extends Resident>(
  kvTokens: number,
  eldestFirst: readonly T[],
  moreToCome: boolean,
): Set<T> {
  const ranked = moreToCome ? eldestFirst : byRank(eldestFirst);
  const inside = new Set<T>();
  const groups = new Set<string | null>();
  let together = 0;
  for (const one of ranked) {
    const { contextTokens, firstContext, group } = one;
    const isThere = group !== null && groups.has(group);
    groups.add(group);
    together += contextTokens - (isThere ? firstContext : 0);
    if (!fitsWhole(kvTokens, together) && inside.size > 0) break;
    inside.add(one);
  }
  return inside;
}

/** Who has waited for long, and then who has come least far. */
function byRank<T extends Resident>(eldestFirst: readonly T[]): T[] {
  const ranked = eldestFirst.map((one) => {
    return { one, rank: one.waitedMs >= MAX_WAITED_MS ? Number.NEGATIVE_INFINITY : rankOf(one) };
  });
  ranked.sort((a, b) => (a.rank === b.rank ? 0 : a.rank - b.rank));
  return ranked.map(({ one }) => one);
}

/** Who is out has to be computed anew, so that it comes in only where it is behind by as much as that is. */
function rankOf({ sampledTokens, contextTokens, isOut }: Resident): number {
  return sampledTokens + (isOut ? contextTokens : 0);
}

/** The most that contexts come to together which grow at one pace and are gone at their ends. */
function peakOf(contexts: readonly Growing[]): number {
  const byEnd = sharing(contexts).sort((a, b) => a.growthTokens - b.growthTokens);
  let together = byEnd.reduce((sum, { contextTokens }) => sum + contextTokens, 0);
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

/** Of a first prompt each of its siblings counts its part. */
function sharing(contexts: readonly Growing[]): { contextTokens: number; growthTokens: number }[] {
  const siblings = new Map<string, number>();
  for (const { group } of contexts) {
    if (group !== null) siblings.set(group, (siblings.get(group) ?? 0) + 1);
  }
  return contexts.map(({ group, contextTokens, firstContext, growthTokens }) => {
    const others = group === null ? 0 : 1 - 1 / (siblings.get(group) ?? 1);
    return { contextTokens: contextTokens - others * firstContext, growthTokens };
  });
}
