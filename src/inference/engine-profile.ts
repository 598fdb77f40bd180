import type { LogprobsMode } from "./logprobs-mode.ts";

/** What `--engine` takes: a kind to be taken for granted, or how to find out. */
export const ENGINE_CHOICES = ["auto", "vllm", "sglang", "prorl", "openai", "text"] as const;

/** `auto` tries every way; `text` tries none and leaves token ids aside. */
export type EngineChoice = (typeof ENGINE_CHOICES)[number];

export type EngineKind = "vllm" | "sglang" | "prorl" | "openai";

/**
 * The way in which an engine is called, best first: by ids on both sides, by messages with ids in
 * the answer (`chat_ids`), or by text alone (`chat`). `completions_text_ids` is for old builds of
 * vLLM, which write ids as `token_id:N`.
 */
export type Rung =
  | "inference_generate"
  | "completions"
  | "completions_text_ids"
  | "sglang_generate"
  | "prorl_generate"
  | "chat_ids"
  | "chat";

/** A rung that takes token ids. */
export type TokenRung = Exclude<Rung, "chat_ids" | "chat">;

/**
 * What a probe found out about an engine. It is stored and shown as it is, so its names are those
 * of the wire.
 */
export type EngineProfile = {
  kind: EngineKind;
  version: string | null;
  rung: Rung;
  /** Units: tokens, prompt and answer together; null where the engine does not say. */
  max_model_len: number | null;
  /** Whether each sampled id comes with its log-probability. */
  logprobs: boolean;
  /** Of which distribution they are; null or absent where that is unknown. */
  logprobs_mode?: LogprobsMode | null;
  /** Whether the id that ended a turn is among the returned ones; null where that is unknown. */
  stop_id_included: boolean | null;
  /** Whether a cache salt keeps prefixes apart; null where the engine does not count cache hits. */
  salt: boolean | null;
  /** Whether replies can be had token by token; absent in profiles from before it was asked. */
  streams?: boolean;
  /** Where its load can be read: in each reply, in `/metrics`. */
  load: ("in_band" | "metrics")[];
  /** Whether the routes that pause it are there. */
  control: boolean;
  /** Whether `/tokenize` is there. */
  tokenize: boolean;
  /** Whether it takes messages, and `/detokenize` is there: then no model folder is needed for ids. */
  tokenizes_chat?: boolean;
  /** Of the ids that it gives for a fixed text; null or absent where it does not tell. */
  tokenizer_hash?: string | null;
  weight_version: string | null;
  /** The better rungs, and why each is not taken. */
  passed_over: { rung: Rung; why: string }[];
};
