/**
 * Computing a token of context anew takes an engine as long as reading about so many in a step: the arithmetic of a
 * dense model beside the bytes of one token's keys and values. It is 600 for 8B and 1,300 for 32B on an H100.
 */
const READS_PER_RECOMPUTED = 1_000;
/** A trajectory that moved stays for so long. */
const TURNS_BETWEEN_MOVES = 4;

/** What a backend reads in each step. */
type Reading = { live: number; contextTokens: number };
type Mover = { contextTokens: number; expectedTokens: number; turnsHere: number };

/**
 * Whether a trajectory is done sooner on another backend, although its context has to be computed there anew: each of
 * its tokens waits for a step that reads all contexts of its backend. While it is computed all others there wait as well.
 */
export function isWorthMoving(mover: Mover, from: Reading, to: Reading): boolean {
  const { contextTokens, expectedTokens, turnsHere } = mover;
  if (turnsHere < TURNS_BETWEEN_MOVES) return false;
  const savedReads = expectedTokens * (from.contextTokens - contextTokens - to.contextTokens);
  return savedReads > READS_PER_RECOMPUTED * contextTokens * (to.live + 1);
}
