/** How a backend is chosen for a new trajectory. All but the first are there for comparison. */
export const POLICIES = [
  "least-work",
  "min-heap",
  "round-robin",
  "static",
  "consistent-hash",
] as const;
export type PolicyName = (typeof POLICIES)[number];

/** A backend that may be chosen, as far as a policy goes by it. */
export type BackendLoad = {
  id: string;
  /** Trajectories that live on it. */
  live: number;
  /** Tokens of their contexts, as they are now. */
  contextTokens: number;
  /** Tokens that they are expected to sample yet. */
  expectedTokens: number;
  /** Requests in the engine that are none of ours. */
  foreign: number;
  /** The share of its memory for keys and values that is in use, 0 to 1; null where it is not known. */
  kvUse: number | null;
  /** Whether it is on this machine. */
  sameNode: boolean;
  /** Trajectories that were ever placed on it. */
  assigned: number;
  /** How many of its trajectories are of the newcomer's group. */
  siblings: number;
};

export type Newcomer = {
  /** Names it, the same in each of its attempts. */
  key: string;
  /** What its siblings share with it; null where it has none. */
  group: string | null;
  /** Its place in the order of submission. */
  ordinal: number;
  /** Tokens that it is expected to sample. */
  expectedTokens: number;
};

/** A choice, and what it was made from. */
export type Placement = {
  backendId: string;
  policy: PolicyName;
  reason: string;
  /** Lower is better; null for policies that do not look at the load. */
  scores: { id: string; score: number | null }[];
};

/** Scores within this share of the best are ties. */
const TIE = 0.01;
/**
 * Siblings are kept together where that costs at most this share more, or one trajectory's work: an engine computes and holds
 * their first prompt once, so that more contexts have room. Rollouts of one instance are long together, so that more than
 * that is not worth it: a backend with many of them is done late.
 */
const SIBLING_BAND = 0.1;
/** A token of context costs memory and a part of each step, but is computed only once. */
const CONTEXT_SHARE = 0.05;

/**
 * The one place where a new trajectory's backend is chosen. It has no state and no clock: what it goes by is
 * all in its arguments.
 *
 * @param pool those that may be chosen, at least one
 * @param cursor counts the placements, so that ties rotate
 */
export function place(
  policy: PolicyName,
  pool: readonly BackendLoad[],
  newcomer: Newcomer,
  cursor: number,
): Placement {
  const sorted = pool.toSorted((a, b) => (a.id < b.id ? -1 : 1));
  const by = (index: number, reason: string) => chosen(policy, sorted, index, reason);
  switch (policy) {
    case "least-work":
      return leastWork(sorted, newcomer, cursor);
    case "min-heap": {
      const least = Math.min(...sorted.map(({ assigned }) => assigned));
      const index = sorted.findIndex(({ assigned }) => assigned === least);
      return by(index, `it was assigned the fewest trajectories ever (${least})`);
    }
    case "round-robin":
      return by(cursor % sorted.length, "it is its turn");
    case "static":
      return by(newcomer.ordinal % sorted.length, `it has each ${sorted.length}th trajectory`);
    case "consistent-hash": {
      const weights = sorted.map(({ id }) => hash(`${id} ${newcomer.group ?? newcomer.key}`));
      return by(weights.indexOf(Math.max(...weights)), "the hash of its group points there");
    }
  }
}

function leastWork(pool: readonly BackendLoad[], newcomer: Newcomer, cursor: number): Placement {
  const scored = pool.map((load) => ({ load, score: workOf(load, newcomer.expectedTokens) }));
  const best = Math.min(...scored.map(({ score }) => score));
  const upTo = (most: number) => scored.filter(({ score }) => score <= most);
  const ties = upTo(best * (1 + TIE));
  const hardlyMore = upTo(best * (1 + SIBLING_BAND) + newcomer.expectedTokens);
  const together = withMost(hardlyMore, ({ load }) => load.siblings);
  const near = withMost(together ?? ties, ({ load }) => Number(load.sameNode));
  const candidates = near ?? together ?? ties;
  const { load } = candidates[cursor % candidates.length] as (typeof scored)[number];
  const why = near
    ? "of those with the least work it is on this node"
    : together
      ? "more of its siblings are there, and it has hardly more work than the least"
      : ties.length > 1
        ? `it is its turn among ${ties.length} with the least work`
        : "it has the least work";
  const scores = scored.map(({ load: { id }, score }) => ({ id, score: Math.round(score) }));
  return { backendId: load.id, policy: "least-work", reason: why, scores };
}

/**
 * The work that a backend has ahead. Units: tokens to be sampled, where a token of context counts as a
 * part of one and memory that fills up as up to as much again.
 */
export function workOf(load: BackendLoad, meanExpected: number): number {
  const { expectedTokens, contextTokens, foreign, kvUse } = load;
  const known = expectedTokens + CONTEXT_SHARE * contextTokens + foreign * meanExpected;
  // Sums that are counted up and down by fractions come out a hair below nothing.
  const ahead = Math.max(0, known);
  return ahead * (1 + crowding(kvUse)) + crowding(kvUse) * meanExpected;
}

/** 0 up to 70 % of the memory, 1 from 95 %, where prefixes are about to be evicted. */
function crowding(kvUse: number | null): number {
  if (kvUse === null) return 0;
  return Math.min(1, Math.max(0, (kvUse - 0.7) / 0.25));
}

/** Those that have the most of something; null where all have the same. */
function withMost<T>(items: T[], count: (item: T) => number): T[] | null {
  const most = Math.max(...items.map(count));
  const those = items.filter((item) => count(item) === most);
  return those.length < items.length ? those : null;
}

function chosen(
  policy: PolicyName,
  pool: readonly BackendLoad[],
  index: number,
  reason: string,
): Placement {
  const scores = pool.map(({ id }) => ({ id, score: null }));
  return { backendId: (pool[index] as BackendLoad).id, policy, reason, scores };
}

/** FNV-1a with a last mix, which a comparison of its values needs. */
function hash(text: string): number {
  let value = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    value = Math.imul(value ^ text.charCodeAt(index), 0x01000193);
  }
  value = Math.imul(value ^ (value >>> 15), 0x85ebca6b);
  return (value ^ (value >>> 13)) >>> 0;
}
