import { z } from "zod";
import { messageSchema, type Said } from "../conversation.ts";
import { chatPieces } from "./chat-pieces.ts";
import { type Format, type SimulatedWire, type Told, usageOf } from "./format.ts";

/** What is read of a chat request; engines ignore more than they know, and so does this one. */
const requestSchema = z.object({
  model: z.string(),
  messages: z.array(messageSchema).min(1),
  tools: z.array(z.unknown()).nullish(),
  max_tokens: z.number().int().min(1).nullish(),
  max_completion_tokens: z.number().int().min(1).nullish(),
  seed: z.number().int().nullish(),
  stop: z.union([z.string().transform((text) => [text]), z.array(z.string())]).nullish(),
  stop_token_ids: z.array(z.number().int()).nullish(),
  cache_salt: z.string().nullish(),
  temperature: z.number().min(0).nullish(),
  top_k: z.number().int().nullish(),
  n: z.literal(1).nullish(),
  logprobs: z.boolean().nullish(),
  return_token_ids: z.boolean().nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
});

export type ChatRequest = z.output<typeof requestSchema>;

/** OpenAI's chat protocol, as vLLM speaks it; other engines know no ids in it. */
export function openAiChat(wire: SimulatedWire): Format {
  const isVllm = wire === "all" || wire === "vllm";
  return (body) => {
    const request = requestSchema.parse(body);
    const asking = {
      model: request.model,
      prompt: { messages: request.messages, tools: request.tools ?? [] },
      seed: request.seed ?? null,
      maxTokens: request.max_completion_tokens ?? request.max_tokens ?? null,
      stopTokenIds: request.stop_token_ids ?? [],
      stop: request.stop ?? [],
      salt: request.cache_salt ?? "",
      filters: { temperature: request.temperature ?? 1, topK: request.top_k ?? -1 },
      logprobsMode: "raw" as const,
    };
    return {
      asking,
      pieces: request.stream === true ? chatPieces(request, isVllm) : undefined,
      nameOf: (requestId) => (isVllm ? `chatcmpl-${requestId}` : requestId),
      write: (told) => completion(told, request, isVllm),
    };
  };
}

function completion(told: Told, request: ChatRequest, isVllm: boolean) {
  const { requestId, model, promptIds, sampled, turn } = told;
  const said = saidBy(told);
  const withIds = isVllm && request.return_token_ids === true;
  const message = {
    role: "assistant",
    content: said.content,
    refusal: null,
    tool_calls: toolCallsOf(said, turn),
  };
  const choice = {
    index: 0,
    message,
    logprobs: request.logprobs ? { content: logprobsOf(told) } : null,
    finish_reason: said.finishReason,
    ...(withIds && { stop_reason: sampled.matchedId, token_ids: sampled.ids }),
  };
  return {
    id: `chatcmpl-${requestId}`,
    object: "chat.completion",
    created: Math.floor(Date.now() / 1000),
    model,
    choices: [choice],
    usage: usageOf(told, isVllm),
    ...(withIds && { prompt_token_ids: promptIds }),
  };
}

function logprobsOf({ sampled, tokenizer }: Told) {
  return sampled.logprobs.map((logprob, index) => ({
    token: tokenizer.decode([sampled.ids[index] ?? 0]),
    logprob,
    bytes: null,
    top_logprobs: [],
  }));
}

export function saidBy({ said, sampled }: Told): Said {
  return said ?? { content: "", toolCalls: [], finishReason: sampled.finish };
}

export function toolCallsOf({ toolCalls }: Said, turn: number) {
  return toolCalls.map((call, index) => ({
    id: `call_${turn}_${index}`,
    type: "function",
    function: call,
  }));
}
