import type { Said, SimulatedMessage } from "../conversation.ts";
import type { Sampled } from "../engine.ts";
import type { Filters, LogprobsMode } from "../logprobs.ts";
import type { SimulatedTokenizer } from "../tokenizer.ts";

/**
 * Which engine's routes are served, and how. `vllm-old` is one from before ids were returned, `sglang-old` one
 * whose streams repeat themselves.
 */
export const WIRES = [
  "all",
  "vllm",
  "vllm-old",
  "sglang",
  "sglang-old",
  "prorl",
  "openai",
] as const;
export type SimulatedWire = (typeof WIRES)[number];

/** A request, whatever its format. */
export type Asking = {
  /** Null where the format names none. */
  model: string | null;
  prompt: { ids: number[] } | { messages: SimulatedMessage[]; tools: unknown[] };
  seed: number | null;
  /** Null for as many as the context leaves. */
  maxTokens: number | null;
  stopTokenIds: number[];
  stop: string[];
  salt: string;
  filters: Filters;
  /** As this engine has them where it is not told otherwise. */
  logprobsMode: LogprobsMode;
};

/** What a reply is written from. */
export type Told = {
  requestId: string;
  model: string;
  promptIds: readonly number[];
  sampled: Sampled;
  /** As far as it was sampled; null for a prompt that is no conversation. */
  said: Said | null;
  turn: number;
  weightVersion: string;
  running: number;
  waiting: number;
  tokenizer: SimulatedTokenizer;
};

/** Tokens that were sampled since the last piece of a stream. */
export type NewTokens = {
  ids: number[];
  logprobs: number[];
  /** What they are as text; a character that is not whole yet comes with the rest of it. */
  text: string;
  /** All so far, these included. */
  soFar: Pick<Sampled, "ids" | "logprobs">;
};

/** How an answer is written token by token. */
export type Pieces = {
  piece(tokens: NewTokens, requestId: string, promptIds: readonly number[]): object[];
  /** What comes last, with what is left. */
  last(tokens: NewTokens, told: Told): object[];
};

/** One request, and how its answer goes onto the wire: as JSON, or as the response itself. */
export type Exchange = {
  asking: Asking;
  write(told: Told): object | Response;
  /** Where the answer is asked for as a stream. */
  pieces?: Pieces | undefined;
  /** What the engine calls a request inside, and wants to hear where it is to be ended; by default the same. */
  nameOf?(requestId: string): string;
};

/** @throws ZodError */
export type Format = (body: unknown) => Exchange;

/** vLLM's error shape. */
export function errorBody(status: number, message: string, param: string | null = null) {
  const type = ERROR_TYPES[status] ?? (status < 500 ? "BadRequestError" : "InternalServerError");
  return { error: { message, type, param, code: status } };
}

const ERROR_TYPES: Record<number, string> = {
  401: "AuthenticationError",
  404: "NotFoundError",
  429: "RateLimitError",
  503: "ServiceUnavailableError",
};

export function usageOf({ sampled }: Told, countsCached: boolean) {
  const { promptTokens: prompt_tokens, ids, cachedTokens: cached_tokens } = sampled;
  const total_tokens = prompt_tokens + ids.length;
  const details = countsCached ? { prompt_tokens_details: { cached_tokens } } : {};
  return { prompt_tokens, completion_tokens: ids.length, total_tokens, ...details };
}
