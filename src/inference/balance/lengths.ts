/** So many of the last lengths are kept. */
const KEPT = 512;

/** What is still to come is taken for at most so many times the mean length. */
const MAX_EXPECTED = 1.5;

/**
 * How long trajectories were, and from that how long one will go on that has come so far. Lengths are
 * skewed: one that is already long goes on for longer than a fresh one, not for less. But those that have
 * ended are the shorter ones until all have, so what they tell about the longest is not taken too far.
 */
export class Lengths {
  /** Tokens of finished trajectories, the oldest first. */
  readonly #finished: number[] = [];
  #sum = 0;
  readonly #firstGuess: number;

  /** @param firstGuess what a trajectory is taken to be long before any has ended. Units: tokens. */
  constructor(firstGuess: number) {
    this.#firstGuess = firstGuess;
  }

  add(tokens: number): void {
    if (tokens <= 0) return;
    this.#sum += tokens;
    if (this.#finished.push(tokens) > KEPT) this.#sum -= this.#finished.shift() ?? 0;
  }

  /**
   * The mean length in the end, as far as it can be told while some still go on: those that have ended are the
   * shorter ones, so what the others have already is shared among them.
   *
   * @param liveTokens of all that still go on
   */
  meanInTheEnd(liveTokens: number): number {
    return (this.#firstGuess + this.#sum + liveTokens) / (this.#finished.length + 1);
  }

  /** The mean of what those that came as far sampled after that. */
  expectedAfter(sampledTokens: number): number {
    if (this.#finished.length === 0) return this.#firstGuess;
    let longer = 0;
    let rest = 0;
    for (const length of this.#finished) {
      if (length <= sampledTokens) continue;
      longer++;
      rest += length - sampledTokens;
    }
    // Where none came so far, it is as far from its end as from its beginning, as with any scale-free tail.
    const expected = longer === 0 ? sampledTokens : rest / longer;
    return Math.min(expected, (MAX_EXPECTED * this.#sum) / this.#finished.length);
  }
}
