/** What a number may still turn out to be. Both ends are the same once it is known. */
export type Interval = { lo: number; hi: number };

/** Figures of a group's rewards that a rule can name. `std` is the population's. */
export const FIGURES = ["n", "min", "max", "mean", "sum", "std", "spread"] as const;
export type Figure = (typeof FIGURES)[number];

/** What the rewards of a group look like in the end, as far as it is known. */
export type RewardBounds = Record<Figure, Interval> & {
  /** Share of the rewards above `limit`. */
  above(limit: number): Interval;
};

/**
 * Bounds of a group's figures, given the rewards that are known. Each is worked out when it is asked for: a rule names
 * one or two, and a large group is asked at each end of a rollout.
 *
 * @param open how many rewards between 0 and 1 are still to come
 * @param droppable whether some of those may never come, so that the group has fewer rewards in the end
 */
export function rewardBounds(
  known: readonly number[],
  open: number,
  droppable: boolean,
): RewardBounds {
  const fewest = droppable ? 0 : open;
  const cases = Array.from({ length: open - fewest + 1 }, (_, index) => fewest + index);
  const hulls = (of: (open: number) => Interval) => hull(cases.map(of));
  return {
    n: { lo: known.length + fewest, hi: known.length + open },
    get min() {
      return hulls((count) => extreme(known, count, Math.min));
    },
    get max() {
      return hulls((count) => extreme(known, count, Math.max));
    },
    get mean() {
      return hulls((count) => meanBounds(known, count));
    },
    sum: { lo: sum(known), hi: sum(known) + open },
    get std() {
      return hulls((count) => stdBounds(known, count));
    },
    get spread() {
      return hulls((count) => spreadBounds(known, count));
    },
    above: (limit) => hulls((count) => shareAbove(known, count, limit)),
  };
}

export function mean(values: readonly number[]): number {
  return values.length === 0 ? 0 : sum(values) / values.length;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function hull(intervals: Interval[]): Interval {
  return {
    lo: Math.min(...intervals.map(({ lo }) => lo)),
    hi: Math.max(...intervals.map(({ hi }) => hi)),
  };
}

/** Of no reward at all every figure is 0. */
function extreme(known: readonly number[], open: number, pick: typeof Math.min): Interval {
  if (known.length + open === 0) return { lo: 0, hi: 0 };
  if (open === 0) return point(pick(...known));
  return { lo: pick(...known, 0), hi: pick(...known, 1) };
}

function meanBounds(known: readonly number[], open: number): Interval {
  const n = known.length + open;
  return n === 0 ? point(0) : { lo: sum(known) / n, hi: (sum(known) + open) / n };
}

/**
 * The variance is convex: least with the rest at the mean of the known, greatest with each at 0 or 1; and of those the
 * more even the halves are, the greater, so that only the split next to that has to be looked at.
 */
function stdBounds(known: readonly number[], open: number): Interval {
  const n = known.length + open;
  if (n === 0) return point(0);
  const least = Math.sqrt(squares(known) / n);
  if (open === 0) return point(least);
  const even = Math.min(Math.max(n / 2 - sum(known), 0), open);
  const corners = [Math.floor(even), Math.ceil(even)].map((ones) => {
    const rest = Array.from({ length: open }, (_, index) => (index < ones ? 1 : 0));
    return Math.sqrt(squares([...known, ...rest]) / n);
  });
  return { lo: least, hi: Math.max(...corners) };
}

/** Squared distances from the mean, summed. */
function squares(values: readonly number[]): number {
  const centre = mean(values);
  return sum(values.map((value) => (value - centre) ** 2));
}

function spreadBounds(known: readonly number[], open: number): Interval {
  if (known.length === 0) return { lo: 0, hi: open >= 2 ? 1 : 0 };
  const low = Math.min(...known);
  const high = Math.max(...known);
  const least = high - low;
  if (open === 0) return point(least);
  return { lo: least, hi: open >= 2 ? 1 : Math.max(1 - low, high) };
}

function shareAbove(known: readonly number[], open: number, limit: number): Interval {
  const n = known.length + open;
  if (n === 0) return point(0);
  const sure = known.filter((reward) => reward > limit).length;
  const surely = limit < 0 ? open : 0;
  const possibly = limit < 1 ? open : 0;
  return { lo: (sure + surely) / n, hi: (sure + possibly) / n };
}

function point(value: number): Interval {
  return { lo: value, hi: value };
}
