import { type Prefix, prefixOf } from "./kv-cache.ts";

/** What is asked of a batch, whose memory knows sequences as `S`. */
export type Work<S> = {
  promptTokens: number;
  outputTokens: number;
  /** Its prompt, and so many tokens of its output behind it. */
  sequence(made: number): S;
  /** Told now and then how many tokens are made, while they are fewer than all. */
  onProgress?: ((made: number) => void) | undefined;
};

export type Done = {
  cachedTokens: number;
  /** Fewer than were to be made where the engine gave up. */
  generated: number;
  /** Units: milliseconds of the caller's time. */
  queueMs: number;
  /** Where in the output the engine's weights changed, oldest first. */
  marks: { version: string; end: number }[];
};

/** What the batch keeps of it. */
export type Request<S, R> = Work<S> & {
  queuedMs: number;
  /** Null until it is let in first. */
  startedMs: number | null;
  /** What it has to compute: its prompt, and what it had made when it was last thrown out. */
  computes: S;
  room: R | null;
  /** In which order it was let in. */
  entered: number;
  /** What of its prompt it found in memory when it was let in first. */
  cachedTokens: number;
  /** Tokens that it had made when it was last thrown out. */
  made: number;
  /** What is left of the computation of its prompt. */
  prefillMs: number;
  /** The batch's step in which it began to decode. */
  fromStep: number;
  marks: Done["marks"];
  done(done: Done): void;
};

/** Work whose tokens have ids, for a `KvCache`. */
export function workOf(
  promptIds: readonly number[],
  outputIds: readonly number[],
  salt: string,
): Work<Prefix> {
  const sequence = (made: number) => {
    return prefixOf(made === 0 ? promptIds : [...promptIds, ...outputIds.slice(0, made)], salt);
  };
  return { promptTokens: promptIds.length, outputTokens: outputIds.length, sequence };
}
