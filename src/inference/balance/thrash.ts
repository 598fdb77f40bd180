/** Whether an engine throws prefixes out of its memory that are needed again soon. */
export type Thrash = {
  /** The share of prompt tokens that its prefix cache had, as long as all was well. */
  baseline: number | null;
  /** Looks in a row that were bad. */
  badLooks: number;
};

/** Since the look before. `hitShare` is null where no prompt was looked up, or it is not counted. */
export type CacheSample = { preemptions: number; hitShare: number | null };

export const NO_THRASH: Thrash = { baseline: null, badLooks: 0 };

const BAD_LOOKS = 2;
const BASELINE_WEIGHT = 0.2;
/** Of the baseline. */
const COLLAPSED = 0.5;

/** Bad is a look with requests thrown out and a cache that meets less than half of what it did. */
export function thrashAfter({ baseline, badLooks }: Thrash, sample: CacheSample): Thrash {
  const { preemptions, hitShare } = sample;
  if (hitShare === null) return { baseline, badLooks };
  if (preemptions > 0 && baseline !== null && hitShare < COLLAPSED * baseline) {
    return { baseline, badLooks: badLooks + 1 };
  }
  const next = baseline === null ? hitShare : baseline + BASELINE_WEIGHT * (hitShare - baseline);
  return { baseline: next, badLooks: 0 };
}

export function isThrashing({ badLooks }: Thrash): boolean {
  return badLooks >= BAD_LOOKS;
}

/** Trajectories that move at once would only carry the crowd elsewhere. */
const TURNS_BETWEEN_MOVES = 4;
const MOVED_SHARE_PER_MINUTE = 0.05;
const MINUTE_MS = 60_000;

type Crowd = { live: number; contextTokens: number; movedAtMs: readonly number[] };

/**
 * Whether a trajectory may leave a thrashing backend: one of the smaller ones, that has not moved just now, and
 * few of them in a minute.
 */
export function mayLeave(
  { contextTokens, turnsHere }: { contextTokens: number; turnsHere: number },
  crowd: Crowd,
  nowMs: number,
): boolean {
  const recent = crowd.movedAtMs.filter((ms) => nowMs - ms < MINUTE_MS).length;
  const allowed = Math.max(1, Math.floor(crowd.live * MOVED_SHARE_PER_MINUTE));
  const isSmall = contextTokens <= crowd.contextTokens / Math.max(1, crowd.live);
  return isSmall && turnsHere >= TURNS_BETWEEN_MOVES && recent < allowed && crowd.live > 1;
}
