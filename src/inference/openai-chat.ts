import { ServiceError } from "../errors.ts";
import { type ChatAnswer, ChatCalls } from "./chat-calls.ts";
import { CHAT_IDS, readChatTokens } from "./chat-tokens.ts";
import { endpointOf } from "./endpoint.ts";
import type { Backend, ChatReply, ChatRequest, EngineClient, Message, Sampling } from "./engine.ts";
import { RETRY_LIMITS, type RetryLimits } from "./engine-call.ts";
import { readChatReply } from "./openai-reply.ts";
import { withReasoning } from "./sent-message.ts";

/**
 * A client for every OpenAI-compatible chat endpoint. Messages go in; ids come back with the text where the
 * engine's probe found `chat_ids`, and are not asked for elsewhere. Its connections are kept between calls,
 * so a thread has one client for all its rollouts.
 *
 * Units: `durationMs` of a reply is the whole call, with the retries in it.
 */
export function openAiChat(limits: RetryLimits = RETRY_LIMITS): EngineClient & Disposable {
  const calls = new ChatCalls(limits);
  return {
    async chat(backend: Backend, request: ChatRequest, signal: AbortSignal): Promise<ChatReply> {
      const startMs = performance.now();
      const endpoint = endpointOf(backend);
      const { sessionId, requestId, timeoutMs, stallMs = 0, maxReplyBytes } = request;
      const headers = { "X-Session-ID": sessionId, "X-SMG-Routing-Key": sessionId };
      const ask = (sampling: Sampling) => {
        const body = bodyOf(backend, { ...request, sampling });
        const onPartial = (value: unknown, tokens: number) => {
          const partial = readPartial(endpoint.shown, value, givesIds(backend));
          if (!partial) return;
          const completionTokens = partial.completionTokens ?? tokens;
          const durationMs = performance.now() - startMs;
          request.onPartial?.({ ...partial, completionTokens, durationMs });
        };
        const call = { endpoint, headers, body, requestId, timeoutMs, maxReplyBytes, onPartial };
        return calls.ask(call, stallMs, signal);
      };
      const { value, tokens, firstTokenMs } = await withinContext(ask, request.sampling);
      const reply = readChatReply(endpoint.shown, value);
      // An engine that breaks off an answer does not count it.
      if (reply.finishReason === "abort") reply.completionTokens ??= tokens;
      if (givesIds(backend)) reply.tokens = readChatTokens(endpoint.shown, value);
      return { ...reply, firstTokenMs, durationMs: performance.now() - startMs };
    },
    [Symbol.dispose]: () => calls[Symbol.dispose](),
  };
}

/** Why an answer was broken off matters more than a part of it that can't be read. */
function readPartial(shown: string, value: unknown, hasIds: boolean) {
  try {
    const reply = { ...readChatReply(shown, value), finishReason: "abort" as const };
    return hasIds ? { ...reply, tokens: readChatTokens(shown, value) } : reply;
  } catch {
    return null;
  }
}

/**
 * Some engines refuse a prompt that would fit where `max_tokens` more would not. Without a number they take
 * what the context leaves, which is less then.
 */
async function withinContext(
  ask: (sampling: Sampling) => Promise<ChatAnswer>,
  sampling: Sampling,
): Promise<ChatAnswer> {
  const { max_tokens, ...rest } = sampling;
  try {
    return await ask(sampling);
  } catch (error) {
    const isFull = error instanceof ServiceError && error.code === "context_exhausted";
    if (!isFull || max_tokens === undefined) throw error;
  }
  return ask(rest);
}

function givesIds({ profile }: Backend): boolean {
  return profile?.rung === "chat_ids";
}

function bodyOf(backend: Backend, request: ChatRequest) {
  const { messages, tools, sampling, templateKwargs, cacheSalt } = request;
  return {
    model: backend.model,
    messages: messages.map((message) => withReasoning(sendable(message))),
    ...(tools.length > 0 && { tools }),
    ...sampling,
    ...(templateKwargs && { chat_template_kwargs: templateKwargs }),
    ...(givesIds(backend) && CHAT_IDS),
    ...(cacheSalt !== undefined && { cache_salt: cacheSalt }),
  };
}

/**
 * vLLM and SGLang parse the arguments of earlier calls and refuse the whole conversation where the
 * model once wrote them badly. So those are sent as an object that holds what it wrote.
 */
function sendable(message: Message): Message {
  if (message.role !== "assistant" || !message.tool_calls) return message;
  const tool_calls = message.tool_calls.map((call) => {
    const { name, arguments: written } = call.function;
    if (isJsonObject(written)) return call;
    const wrapped = JSON.stringify({ malformed_arguments: written });
    return { ...call, function: { name, arguments: wrapped } };
  });
  return { ...message, tool_calls };
}

function isJsonObject(text: string): boolean {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value);
  } catch {
    return false;
  }
}
