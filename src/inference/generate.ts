import type { Backend, Sampling } from "./engine.ts";
import type { LogprobsMode } from "./logprobs-mode.ts";

/** One call that takes token ids and gives token ids. */
export type GenerateRequest = {
  /** The whole prompt, as the engine is to see it. */
  promptIds: readonly number[];
  /** `max_tokens` is an upper limit; the engine is asked for no more than its context leaves. */
  sampling: Sampling;
  stopTokenIds: readonly number[];
  /** Keeps prefix caches apart, such as those of different weights. Units: 1 to 1,024 characters. */
  cacheSalt?: string;
  /** Ids of the reply must be below it, where the caller knows the vocabulary. */
  vocabSize?: number;
  /** Of the whole call. The job's own deadline comes through `signal`. */
  timeoutMs: number;
  /** The longest silence between two tokens. Without it, or with 0, the reply is not streamed. */
  stallMs?: number;
  /**
   * Ends a streamed call, which then resolves as `abort` with what it has sampled. A call that is not
   * streamed goes on.
   */
  stopped?: AbortSignal;
  /** Gets what a streamed call had sampled that then fails or is aborted. */
  onPartial?: (partial: GenerateReply) => void;
  maxReplyBytes: number;
  /** Sent as `X-Session-ID` and `X-SMG-Routing-Key`, so that routers keep the trajectory together. */
  sessionId: string;
  requestId: string;
};

/** Which weights sampled which tokens. Units: `start` and `end` are indices, `end` exclusive. */
export type WeightSpan = { version: string; start: number; end: number };

/**
 * `stop`: the model ended its turn. `length`: `max_tokens` or the context did. `abort`: the engine
 * gave up; what it had sampled is there, and the turn can go on from it.
 */
export type GenerateFinish = "stop" | "length" | "abort";

/**
 * What an engine sampled, checked.
 *
 * Shapes: `tokenIds` and `logprobs` both have length n. `weightSpans` covers 0 to n without gaps, or
 * is empty.
 */
export type SampledTokens = {
  /** With the id that ended the turn, where the engine returns it. */
  tokenIds: number[];
  /** Of the sampled tokens, finite; null where the engine gives none at all. */
  logprobs: number[] | null;
  finishReason: GenerateFinish;
  /** The id that ended the turn; null where it was none of `stopTokenIds`, or is not told. */
  stopTokenId: number | null;
  /** Empty where the engine does not say which token is of which version. */
  weightSpans: WeightSpan[];
  /** The version at the end. Without spans it can't tell of an update within the turn. */
  weightVersion: string | null;
  /** Prompt tokens that were in the engine's prefix cache; null where it does not say. */
  cachedTokens: number | null;
};

/** Units: requests of the engine as a whole, when it sent the reply. */
export type InBandLoad = { running: number; waiting: number };

export type GenerateReply = SampledTokens & {
  promptTokens: number;
  /** Where it came from, where that was not the caller's choice. */
  backendId?: string;
  /** Of which distribution the log-probabilities are; null where that is unknown. */
  logprobsMode: LogprobsMode | null;
  /** For leave to make the calls that it took. Units: milliseconds. */
  waitedMs?: number;
  load: InBandLoad | null;
  times: {
    /** The whole call, with the retries in it. */
    totalMs: number;
    /** In the engine, before it began; null where it does not say. */
    queueMs: number | null;
    /** From the call to the first token; null where the reply was not streamed. */
    firstTokenMs: number | null;
  };
};

/** Token in, token out, with any engine that can. */
export interface TokenEngine {
  /**
   * @throws ServiceError `engine_*`, `context_exhausted`; `token_invariant` for a reply that
   * contradicts itself or the request; the abort reason of `signal` as it is.
   */
  generate(backend: Backend, request: GenerateRequest, signal: AbortSignal): Promise<GenerateReply>;
  /**
   * Asks the engine to end a call and to answer it with what it has sampled. False where the engine can't
   * be asked. Does not fail.
   */
  stop?(backend: Backend, requestId: string): Promise<boolean>;
}
