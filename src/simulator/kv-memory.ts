export const BLOCK_TOKENS = 16;

/** A sequence of tokens, as a memory knows it. */
export type Sequence = { tokens: number };

/** Room for one request, until it is released. */
export type Room = { cachedTokens: number };

/**
 * The memory of an engine for keys and values, in blocks of `BLOCK_TOKENS`, as vLLM keeps it: requests whose
 * sequences begin alike hold those blocks once, and what nobody uses stays until the room is needed.
 */
export interface KvMemory<S extends Sequence, R extends Room> {
  readonly capacityBlocks: number;
  /** Blocks that nobody uses now. */
  readonly availableBlocks: number;
  /** The share that running requests use. */
  readonly usage: number;
  /**
   * Room for a prompt, of which a part may be there already; null while there is none.
   *
   * @param headroom blocks that have to be left for others
   */
  reserve(prompt: S, headroom: number): R | null;
  /** From now on others may use what is reserved for the prompt. */
  share(room: R): void;
  /** Room for a context that has come to `tokens`. False where there is none. */
  grow(room: R, tokens: number): boolean;
  /** The request is over; what it computed stays until the room is needed. Null where its prompt was not computed. */
  release(room: R, computed: S | null): void;
}

export function blocksFor(tokens: number): number {
  return Math.ceil(tokens / BLOCK_TOKENS);
}

/** Of so many tokens, those that can be found again: the last is always computed, because its output is asked for. */
export function reusableBlocks(tokens: number): number {
  return Math.floor((tokens - 1) / BLOCK_TOKENS);
}
