import { CHAT_IDS, readChatTokens } from "./chat-tokens.ts";
import { endpointOf } from "./endpoint.ts";
import type { Backend, ChatReply, ChatRequest, EngineClient, Message } from "./engine.ts";
import { callEngine, RETRY_LIMITS, type RetryLimits } from "./engine-call.ts";
import { Connections } from "./exchange.ts";
import { readChatReply } from "./openai-reply.ts";

/**
 * A client for every OpenAI-compatible chat endpoint. Messages go in; ids come back with the text
 * where the engine's probe found `chat_ids`, and are not asked for elsewhere. Its connections are kept between calls, so a thread has one client for all its
 * rollouts.
 *
 * Units: `durationMs` of a reply is the whole call, with the retries in it.
 */
export function openAiChat(limits: RetryLimits = RETRY_LIMITS): EngineClient & Disposable {
  const connections = new Connections();
  return {
    async chat(backend: Backend, request: ChatRequest, signal: AbortSignal): Promise<ChatReply> {
      const startMs = performance.now();
      const endpoint = endpointOf(backend);
      const { sessionId, requestId, timeoutMs, maxReplyBytes } = request;
      const call = {
        endpoint,
        method: "POST" as const,
        root: "v1" as const,
        path: "/chat/completions",
        headers: { "X-Session-ID": sessionId, "X-SMG-Routing-Key": sessionId },
        body: () => bodyOf(backend, request),
        requestId,
        timeoutMs,
        maxReplyBytes,
      };
      const value = await callEngine(connections, call, limits, signal);
      const reply = readChatReply(endpoint.shown, value);
      if (givesIds(backend)) reply.tokens = readChatTokens(endpoint.shown, value);
      return { ...reply, durationMs: performance.now() - startMs };
    },
    [Symbol.dispose]: () => connections[Symbol.dispose](),
  };
}

function givesIds({ profile }: Backend): boolean {
  return profile?.rung === "chat_ids";
}

function bodyOf(backend: Backend, request: ChatRequest) {
  const { messages, tools, sampling, templateKwargs, cacheSalt } = request;
  return {
    model: backend.model,
    messages: messages.map(sendable),
    ...(tools.length > 0 && { tools }),
    ...sampling,
    ...(templateKwargs && { chat_template_kwargs: templateKwargs }),
    ...(givesIds(backend) && CHAT_IDS),
    ...(cacheSalt !== undefined && { cache_salt: cacheSalt }),
    stream: false,
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
