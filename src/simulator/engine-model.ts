/** How fast an engine is, and what it can hold. */
export type EngineModel = {
  /** A decoding step reads the weights once, however many requests it makes a token of. Units: milliseconds. */
  weightsMs: number;
  /** And the keys and values of every context in the batch. Units: milliseconds for a token of context. */
  contextMs: number;
  /** Of tokens that are in no cache. While it computes them, it decodes nothing. */
  prefillTokensPerS: number;
  /** Memory for keys and values. Units: tokens. */
  kvTokens: number;
  /** Requests in one step at most; further ones wait. */
  maxBatch: number;
};

/** Answers at once, and has room for more than anybody asks. */
export const INSTANT: EngineModel = {
  ...{ weightsMs: 0, contextMs: 0, prefillTokensPerS: Number.POSITIVE_INFINITY },
  ...{ kvTokens: 4_194_304, maxBatch: Number.POSITIVE_INFINITY },
};

/** Requests that decode together, and the tokens of all their contexts before the first of the steps. */
export type Decoding = { requests: number; contextTokens: number };

/**
 * What `steps` decoding steps take. Each is longer than the one before, by the tokens that were added to the contexts.
 * Units: milliseconds.
 */
export function msOfSteps(model: EngineModel, decoding: Decoding, steps: number): number {
  const { weightsMs, contextMs } = model;
  const firstMs = weightsMs + contextMs * decoding.contextTokens;
  return firstMs * steps + (contextMs * decoding.requests * steps * steps) / 2;
}

/** How many steps so much time is enough for: the inverse of `msOfSteps`. Not for an engine that takes no time. */
export function stepsIn(model: EngineModel, decoding: Decoding, ms: number): number {
  const { weightsMs, contextMs } = model;
  const firstMs = weightsMs + contextMs * decoding.contextTokens;
  const growthMs = contextMs * decoding.requests;
  return (2 * ms) / (firstMs + Math.sqrt(firstMs * firstMs + 2 * growthMs * ms));
}
