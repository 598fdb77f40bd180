import type {
  Backend,
  ChatReply,
  ChatRequest,
  EngineClient,
  Message,
} from "../../src/inference/engine.ts";

import type { Turns } from "../../src/inference/turn-gate.ts";
import type { Engines } from "../../src/worker/open-dialogue.ts";

export const BACKEND: Backend = { id: "b1", url: "http://127.0.0.1:1/v1", model: "fake" };

/** What the model does at one call: answer, or whatever the function does. */
export type Scripted = ChatReply | ((signal: AbortSignal) => Promise<ChatReply>);

/** A model that plays its script, call after call, and keeps what it was asked. */
export class FakeEngine implements EngineClient {
  readonly requests: ChatRequest[] = [];
  /** What comes of an answer before it is broken off. */
  beforeFailure: ChatReply | null = null;
  readonly #script: Scripted[];

  constructor(script: Scripted[]) {
    this.#script = script;
  }

  async chat(_backend: Backend, request: ChatRequest, signal: AbortSignal): Promise<ChatReply> {
    const turn = this.#script[this.requests.push(request) - 1];
    if (!turn) throw new Error(`the script has no turn ${this.requests.length}`);
    if (typeof turn !== "function") return turn;
    if (this.beforeFailure) request.onPartial?.(this.beforeFailure);
    return await turn(signal);
  }
}

/** Leave for every call, at once, on the one backend that there is; a call that failed is not tried again. */
export function openTurns(backend: Backend = BACKEND): Turns {
  const stopped = new AbortController().signal;
  const lease = { backend, weightVersion: null, stopped, reweighed: false, end: () => {} };
  return {
    async enter({ failed }) {
      if (failed !== null) throw failed;
      return lease;
    },
  };
}

/** A thread's engines of which only the one for messages is there. */
export function fakeEngines(chat: EngineClient): Engines {
  const refuse = async () => Promise.reject(new Error("there is no engine for tokens"));
  return { chat, tokens: { generate: refuse }, turns: openTurns(), tokenModel: refuse };
}

function reply(message: Extract<Message, { role: "assistant" }>): ChatReply {
  const finishReason = message.tool_calls ? "tool_calls" : "stop";
  return { message, finishReason, promptTokens: 10, completionTokens: 2, durationMs: 0 };
}

/** A message without a tool call. */
export function says(content: string): ChatReply {
  return reply({ role: "assistant", content });
}

/** A message that calls tools. Arguments that are text are sent as they are; ids count from `call_0`. */
export function calls(...asked: [name: string, args: unknown][]): ChatReply {
  const tool_calls = asked.map(([name, args], index) => ({
    id: `call_${index}`,
    type: "function" as const,
    function: { name, arguments: typeof args === "string" ? args : JSON.stringify(args) },
  }));
  return reply({ role: "assistant", content: "", tool_calls });
}

/** A reply as the recorder gets it from a dialogue in text mode. */
export function recorded({ message, finishReason, durationMs, ...counts }: ChatReply) {
  const { promptTokens, completionTokens } = counts;
  const weights = { weightVersion: null, weightSpans: [], logprobsMode: null };
  const unknown = { cachedTokens: null, queueMs: null, firstTokenMs: null, ...weights };
  return { message, finishReason, durationMs, promptTokens, completionTokens, ...unknown };
}

/** A call that only the abort of its signal ends. */
export function neverAnswers(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    signal.addEventListener("abort", () => reject(signal.reason), { once: true });
  });
}
