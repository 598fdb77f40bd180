/** So many of the last lengths are kept. */
const KEPT = 512;
/** What a trajectory is taken to be long before any has ended. Units: sampled tokens. */
const FIRST_GUESS = 2_000;

/**
 * How long trajectories were, and from that how long one will go on that has come so far. Lengths are
 * skewed: one that is already long goes on for longer than a fresh one, not for less.
 */
export class Lengths {
  /** Sampled tokens of finished trajectories, the oldest first. */
  readonly #finished: number[] = [];

  add(sampledTokens: number): void {
    if (sampledTokens <= 0) return;
    if (this.#finished.push(sampledTokens) > KEPT) this.#finished.shift();
  }

  /** The mean of what those that came as far sampled after that. */
  expectedAfter(sampledTokens: number): number {
    if (this.#finished.length === 0) return FIRST_GUESS;
    let longer = 0;
    let rest = 0;
    for (const length of this.#finished) {
      if (length <= sampledTokens) continue;
      longer++;
      rest += length - sampledTokens;
    }
    // Where none came so far, it is as far from its end as from its beginning, as with any scale-free tail.
    return longer === 0 ? sampledTokens : rest / longer;
  }
}
