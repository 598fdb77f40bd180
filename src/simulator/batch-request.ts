import { type Lease, type Prefix, prefixOf } from "./kv-cache.ts";

export type Work = {
  promptIds: readonly number[];
  outputIds: readonly number[];
  salt: string;
  signal: AbortSignal;
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
export type Request = Work & {
  queuedMs: number;
  /** Null until it is let in first. */
  startedMs: number | null;
  /** What it has to compute: its prompt, and what it had made when it was last thrown out. */
  prefix: Prefix;
  lease: Lease | null;
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
  resolve(done: Done): void;
};

/** Its prompt, and what it has made behind it. */
export function computedBy({ promptIds, outputIds, salt }: Work, made: number): Prefix {
  const ids = made === 0 ? promptIds : [...promptIds, ...outputIds.slice(0, made)];
  return prefixOf(ids, salt);
}
