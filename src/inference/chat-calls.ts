import { ServiceError } from "../errors.ts";
import { callEngine, type EngineCall, type RetryLimits } from "./engine-call.ts";
import { Connections } from "./exchange.ts";
import { refusedWith } from "./refusal.ts";
import { callStreamed } from "./streamed-call.ts";
import type { Json } from "./wires/streamed.ts";
import { streamedChat } from "./wires/streamed-chat.ts";

/** What servers say to a request for a stream that would take the same one without. */
const MAY_MEAN_STREAM = new Set([400, 404, 405, 406, 415, 422, 501]);

export type ChatCall = Omit<EngineCall, "body" | "root" | "method" | "path"> & {
  body: object;
  /** Gets what had come of a stream that was broken off, in the shape of a whole reply, and how many tokens at least. */
  onPartial?(value: unknown, tokens: number): void;
};

export type ChatAnswer = {
  /** In the shape of a whole reply, however it came. */
  value: unknown;
  /** As the pieces of a stream have them: at least so many. */
  tokens: number;
  firstTokenMs: number | null;
};

/**
 * Chat completions, as streams where a silence limit is set. Which servers refuse streams is found out by
 * asking, because one that is called by text is not probed for it.
 */
export class ChatCalls implements Disposable {
  readonly #connections = new Connections();
  readonly #limits: RetryLimits;
  /** Of each server that was asked for one, whether it sends streams. */
  readonly #streams = new Map<string, boolean>();

  constructor(limits: RetryLimits) {
    this.#limits = limits;
  }

  /** @throws ServiceError `engine_*`, `context_exhausted`; the abort reason of `signal` as it is. */
  async ask(call: ChatCall, stallMs: number, signal: AbortSignal): Promise<ChatAnswer> {
    const server = call.endpoint.shown;
    if (stallMs === 0 || this.#streams.get(server) === false) return this.#whole(call, signal);
    const startMs = performance.now();
    try {
      const answer = await this.#stream(call, stallMs, signal);
      this.#streams.set(server, true);
      return answer;
    } catch (error) {
      if (this.#streams.get(server) || !mayMeanStream(error)) throw error;
    }
    const timeoutMs = Math.max(1, call.timeoutMs - (performance.now() - startMs));
    const answer = await this.#whole({ ...call, timeoutMs }, signal);
    this.#streams.set(server, false);
    return answer;
  }

  [Symbol.dispose](): void {
    this.#connections[Symbol.dispose]();
  }

  async #whole(call: ChatCall, signal: AbortSignal): Promise<ChatAnswer> {
    const asked = asCall(call, { stream: false });
    const value = await callEngine(this.#connections, asked, this.#limits, signal);
    return { value, tokens: 0, firstTokenMs: null };
  }

  async #stream(call: ChatCall, stallMs: number, signal: AbortSignal): Promise<ChatAnswer> {
    const asked = asCall(call, streamedChat.ask);
    const options = { streamed: streamedChat, stallMs, stopped: undefined };
    const told = await callStreamed(this.#connections, asked, this.#limits, options, signal);
    const { value, firstTokenMs } = told;
    const tokens = value === null ? 0 : countTokens(value as Json);
    if (told.broken) {
      if (tokens > 0) call.onPartial?.(ended(value as Json), tokens);
      throw told.broken.reason;
    }
    if (firstTokenMs === null) return { value, tokens: 0, firstTokenMs };
    return { value: ended(value as Json), tokens, firstTokenMs };
  }
}

function asCall({ body, onPartial: _, ...call }: ChatCall, fields: object): EngineCall {
  const path = "/chat/completions";
  return { ...call, method: "POST", root: "v1", path, body: () => ({ ...body, ...fields }) };
}

function mayMeanStream(error: unknown): boolean {
  const status = error instanceof ServiceError ? refusedWith(error) : null;
  return status !== null && MAY_MEAN_STREAM.has(status);
}

/** An engine that gives no ids sends one or more tokens in each piece. */
function countTokens(reply: Json): number {
  const [{ token_ids }] = reply.choices as [Json];
  return Math.max(streamedChat.count(reply), Array.isArray(token_ids) ? token_ids.length : 0);
}

/** A stream that gives no reason for its end was broken off in the engine, which leaves out the last piece. */
function ended(reply: Json): Json {
  const [choice] = reply.choices as [Json];
  choice.finish_reason ??= "abort";
  return reply;
}
