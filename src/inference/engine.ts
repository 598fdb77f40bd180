import type { Network } from "../lib/network.ts";
import type { EngineProfile } from "./engine-profile.ts";
import type { SampledTokens, WeightSpan } from "./generate.ts";

/** A tool as the model sees it, in OpenAI's shape. */
export type ToolSchema = {
  type: "function";
  function: { name: string; description: string; parameters: Record<string, unknown> };
};

export type ToolCall = {
  id: string;
  type: "function";
  /** `arguments` is the JSON text as the model wrote it; it may be malformed. */
  function: { name: string; arguments: string };
};

export type Message =
  | { role: "system" | "user"; content: string }
  | { role: "assistant"; content: string; reasoning_content?: string; tool_calls?: ToolCall[] }
  | { role: "tool"; content: string; tool_call_id: string };

export type AssistantMessage = Extract<Message, { role: "assistant" }>;

/** Sampling parameters, by their OpenAI names; vLLM and SGLang take the same. */
export type Sampling = {
  temperature?: number;
  top_p?: number;
  top_k?: number;
  min_p?: number;
  max_tokens?: number;
  seed?: number;
  stop?: string[];
  presence_penalty?: number;
  frequency_penalty?: number;
  repetition_penalty?: number;
};

/** One inference server, as a worker needs to know it. */
export type Backend = {
  id: string;
  /** Base address including `/v1`; `http:` or `https:`. */
  url: string;
  /** Where its name may lead, looked at for each connection; anywhere without it. */
  networks?: readonly Network[];
  model: string;
  /** Sent as a bearer token; never logged, stored in results or shown. */
  apiKey?: string;
  /** Its model's Hugging Face folder on this node, with tokenizer and chat template. */
  modelDir?: string;
  /**
   * A plain address that each rollout says itself how to call. It is never probed for what it serves, and its
   * model is not known.
   */
  routed?: true;
  /** What its probe found out; absent where it was never probed, which leaves chat as text. */
  profile?: EngineProfile;
};

export type ChatRequest = {
  messages: Message[];
  tools: ToolSchema[];
  sampling: Sampling;
  /** Variables of the chat template, for engines that take them (`chat_template_kwargs`). */
  templateKwargs?: Record<string, unknown>;
  /** Of the whole call. The job's own deadline comes through `signal`. */
  timeoutMs: number;
  /** The longest silence within the reply. Without it, or with 0, the reply is not streamed. */
  stallMs?: number;
  maxReplyBytes: number;
  /** Sent as `X-Session-ID` and `X-SMG-Routing-Key`, so that routers keep the trajectory together. */
  sessionId: string;
  requestId: string;
  /** Keeps prefix caches apart, such as those of different weights. Units: 1 to 1,024 characters. */
  cacheSalt?: string;
  /** Gets what had come of an answer that was broken off, before the call fails. */
  onPartial?(partial: ChatReply): void;
};

export type FinishReason = "stop" | "tool_calls" | "length" | "abort";

export type ChatReply = {
  message: AssistantMessage;
  finishReason: FinishReason;
  /** As the engine counted them; null where it does not say. */
  promptTokens: number | null;
  completionTokens: number | null;
  /** Of the prompt, in the engine's prefix cache; null where it does not say. */
  cachedTokens?: number | null;
  durationMs: number;
  /** From the call to the first token; null where the reply was not streamed. */
  firstTokenMs?: number | null;
  /** Where it came from, where that was not the caller's choice. */
  backendId?: string;
  /** For leave to make the calls that it took. Units: milliseconds. */
  waitedMs?: number;
  /** What was announced when the call began; of an answer with ids that of its last one. */
  weightVersion?: string | null;
  /** Which of its ids are of which weights; empty where nobody knows. */
  weightSpans?: WeightSpan[];
  /** Sampled before, in answers that were broken off and are no part of this one. At least so many. */
  lostTokens?: number;
  /** From an engine that is called by `chat_ids`: the ids of the same call. */
  tokens?: ChatTokens;
};

/** The ids of a call whose prompt the engine made from messages. */
export type ChatTokens = SampledTokens & { promptIds: number[] };

/** A way to talk to one kind of inference server. */
export interface EngineClient {
  /** @throws ServiceError `engine_*`; the abort reason of `signal` as it is. */
  chat(backend: Backend, request: ChatRequest, signal: AbortSignal): Promise<ChatReply>;
}
