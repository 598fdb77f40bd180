/** So many of the last lengths are kept. */
const KEPT = 512;
/** The first guess counts as much as so many of them. */
const ENOUGH = 16;

/** How long trajectories are. Units: tokens that are sampled. */
export interface LengthEstimate {
  /** One has ended. */
  add(tokens: number): void;
  /** The mean of what one that came as far samples after that; null stands for any that has not begun. */
  expectedAfter(sampledTokens: number, jobId: string | null): number;
}

/**
 * How long trajectories were, and from that how long one will go on that has come so far. Those that have ended are the
 * shorter ones until all have, so those that still go on are counted as well, as longer than what they have
 * (the estimate of Kaplan and Meier).
 */
export class Lengths implements LengthEstimate {
  /** Tokens of finished trajectories, the oldest first. */
  readonly #finished: number[] = [];
  readonly #firstGuess: number;
  readonly #living: () => Iterable<number>;
  #curve: Curve | null = null;

  /**
   * @param firstGuess what a trajectory is taken to be long before any has ended. Units: tokens.
   * @param living what those have that still go on, looked at whenever one ends
   */
  constructor(firstGuess: number, living: () => Iterable<number> = () => []) {
    this.#firstGuess = firstGuess;
    this.#living = living;
  }

  add(tokens: number): void {
    if (tokens <= 0) return;
    if (this.#finished.push(tokens) > KEPT) this.#finished.shift();
    this.#curve = null;
  }

  expectedAfter(sampledTokens: number): number {
    const { ends, share, area, beyond } = this.#known();
    const next = firstAbove(ends, sampledTokens);
    if (next === ends.length) return beyond;
    const after = (area[next] as number) + (share.at(-1) as number) * beyond;
    return (ends[next] as number) - sampledTokens + after / (share[next] as number);
  }

  #known(): Curve {
    this.#curve ??= curveOf(this.#finished, [...this.#living()], this.#firstGuess);
    return this.#curve;
  }
}

/**
 * Shapes: `ends` and `area` have length n, `share` n + 1. `share[i]` is that of trajectories that come to `ends[i]`,
 * the last one that which goes beyond all; `area[i]` is the sum of shares over the tokens from `ends[i]` on. `beyond`
 * is what those that are longer than all are taken to sample yet: all tokens together for each end that was seen.
 */
type Curve = { ends: number[]; share: number[]; area: number[]; beyond: number };

function curveOf(finished: readonly number[], living: number[], firstGuess: number): Curve {
  const ends = finished.toSorted((a, b) => a - b);
  const going = living.sort((a, b) => a - b);
  const share = [1];
  let shorter = 0;
  for (const [index, end] of ends.entries()) {
    while (shorter < going.length && (going[shorter] as number) < end) shorter++;
    const reached = ends.length - index + going.length - shorter;
    share.push((share[index] as number) * (1 - 1 / reached));
  }
  const area = ends.map(() => 0);
  for (let index = ends.length - 2; index >= 0; index--) {
    const width = (ends[index + 1] as number) - (ends[index] as number);
    area[index] = (area[index + 1] as number) + width * (share[index + 1] as number);
  }
  const tokens = [...ends, ...going].reduce((sum, length) => sum + length, ENOUGH * firstGuess);
  return { ends, share, area, beyond: tokens / (ENOUGH + ends.length) };
}

function firstAbove(sorted: readonly number[], value: number): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((sorted[middle] as number) > value) high = middle;
    else low = middle + 1;
  }
  return low;
}
