import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { exactJson } from "../../lib/exact-json.ts";
import { endpointOf } from "../endpoint.ts";
import type { Backend, ToolSchema } from "../engine.ts";
import { callEngine, RETRY_LIMITS } from "../engine-call.ts";
import type { Connections } from "../exchange.ts";
import { withReasoning } from "../sent-message.ts";
import { readShape } from "../wires/wire.ts";
import type { RenderOptions, TemplateMessage } from "./chat-template.ts";

const TIMEOUT_MS = 30_000;
const MAX_REPLY_BYTES = 64 * 1024 * 1024;

const tokensSchema = z.object({ tokens: z.array(z.int().min(0)) });
/** vLLM calls it `prompt`, SGLang `text`. */
const textSchema = z.union([
  z.object({ prompt: z.string() }).transform(({ prompt }) => prompt),
  z.object({ text: z.string() }).transform(({ text }) => text),
]);

/** The routes of an engine that tokenise, and that render messages. */
export class EngineRoutes {
  readonly #connections: Connections;
  readonly #backend: Backend;

  constructor(connections: Connections, backend: Backend) {
    this.#connections = connections;
    this.#backend = backend;
  }

  /** @throws ServiceError `engine_*` */
  async encode(prompt: string, signal: AbortSignal): Promise<number[]> {
    const value = await this.#post("/tokenize", { prompt, add_special_tokens: false }, signal);
    return this.#read(tokensSchema, "token ids", value).tokens;
  }

  /** @throws ServiceError `engine_*` */
  async decode(tokens: number[], signal: AbortSignal): Promise<string> {
    // SGLang leaves special tokens out otherwise.
    const body = { tokens, skip_special_tokens: false };
    const value = await this.#post("/detokenize", body, signal);
    return this.#read(textSchema, "text", value);
  }

  /** Messages as the ids of their prompt. @throws ServiceError `template_refused`, `engine_*` */
  async tokenizeChat(
    messages: readonly TemplateMessage[],
    tools: readonly ToolSchema[],
    { addGenerationPrompt, variables }: RenderOptions,
    signal: AbortSignal,
  ): Promise<number[]> {
    const body = {
      messages: messages.map((message) => withReasoning(asWritten(message))),
      ...(tools.length > 0 && { tools }),
      add_generation_prompt: addGenerationPrompt,
      add_special_tokens: false,
      ...(variables && { chat_template_kwargs: variables }),
    };
    try {
      const value = await this.#post("/tokenize", body, signal);
      return this.#read(tokensSchema, "token ids", value).tokens;
    } catch (error) {
      if (!(error instanceof ServiceError) || !REFUSALS.has(error.code)) throw error;
      throw new ServiceError("template_refused", error.message, { cause: error });
    }
  }

  #post(path: string, fields: object, signal: AbortSignal): Promise<unknown> {
    const body = { model: this.#backend.model, ...fields };
    const call = {
      endpoint: endpointOf(this.#backend),
      ...{ method: "POST" as const, root: "root" as const, path, headers: {} },
      body: () => body,
      requestId: `tokenize.${crypto.randomUUID()}`,
      ...{ timeoutMs: TIMEOUT_MS, maxReplyBytes: MAX_REPLY_BYTES },
    };
    return callEngine(this.#connections, call, RETRY_LIMITS, signal);
  }

  #read<S extends z.ZodType>(schema: S, what: string, value: unknown): z.output<S> {
    return readShape(schema, endpointOf(this.#backend).shown, what, value);
  }
}

/** What a template that raises an error makes of a request; some builds answer with 500. */
const REFUSALS = new Set(["engine_refused", "engine_bad_reply"]);

/** On the wire the arguments of a call are text; engines parse them for their template. */
function asWritten(message: TemplateMessage): TemplateMessage {
  const { tool_calls } = message as { tool_calls?: { function: { arguments: unknown } }[] };
  if (!tool_calls) return message;
  const calls = tool_calls.map((call) => {
    const { arguments: args } = call.function;
    const text = typeof args === "string" ? args : exactJson(args);
    return { ...call, function: { ...call.function, arguments: text } };
  });
  return { ...message, tool_calls: calls };
}
