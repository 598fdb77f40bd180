import { z } from "zod";

const contentSchema = z
  .union([z.string(), z.array(z.object({ type: z.literal("text"), text: z.string() })), z.null()])
  .optional()
  .transform((content) => {
    if (Array.isArray(content)) return content.map((part) => part.text).join("");
    return content ?? "";
  });

const messageSchema = z.discriminatedUnion("role", [
  z.object({ role: z.enum(["system", "developer", "user"]), content: contentSchema }),
  z.object({
    role: z.literal("assistant"),
    content: contentSchema,
    tool_calls: z
      .array(z.object({ function: z.object({ name: z.string(), arguments: z.string() }) }))
      .nullish(),
  }),
  z.object({ role: z.literal("tool"), content: contentSchema, tool_call_id: z.string() }),
]);

/**
 * What the simulator reads of a chat request; engines ignore more than they know, and so does it.
 */
export const chatRequestSchema = z.object({
  model: z.string(),
  messages: z.array(messageSchema).min(1),
  max_tokens: z.number().int().min(1).nullish(),
  max_completion_tokens: z.number().int().min(1).nullish(),
  seed: z.number().int().nullish(),
  n: z.literal(1).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z.object({ include_usage: z.boolean().nullish() }).nullish(),
});

export type SimulatedRequest = z.output<typeof chatRequestSchema>;
export type SimulatedMessage = SimulatedRequest["messages"][number];

/** What a policy says in one turn; `arguments` is the text that goes onto the wire. */
export type Said = {
  content: string | null;
  toolCalls: { name: string; arguments: string }[];
  finishReason: string;
};

const BYTES_PER_TOKEN = 4;
const TOKENS_PER_MESSAGE = 4;

/**
 * Four bytes of UTF-8 are one token: stable, cheap, and of the right order for English and code.
 */
export function countTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text) / BYTES_PER_TOKEN);
}

/** Every message costs four tokens more, as a chat template would add. */
export function countPrompt(messages: SimulatedMessage[]): number {
  let tokens = 0;
  for (const message of messages) {
    tokens += TOKENS_PER_MESSAGE + countTokens(message.content);
    if (message.role === "assistant") {
      for (const call of message.tool_calls ?? []) tokens += countCall(call.function);
    }
  }
  return tokens;
}

export function countSaid({ content, toolCalls }: Said): number {
  const called = toolCalls.reduce((tokens, call) => tokens + countCall(call), 0);
  return Math.max(1, countTokens(content ?? "") + called);
}

function countCall(call: { name: string; arguments: string }): number {
  return countTokens(call.name) + countTokens(call.arguments);
}

/**
 * What an engine returns when `max_tokens` ends the turn: text up to there, and no tool call that
 * is whole.
 */
export function cutToTokens(said: Said, maxTokens: number): Said {
  if (countSaid(said) <= maxTokens) return said;
  const bytes = Buffer.from(said.content ?? "").subarray(0, maxTokens * BYTES_PER_TOKEN);
  const content = bytes.toString().replace(/\ufffd+$/, "");
  return { content, toolCalls: [], finishReason: "length" };
}

export type Completion = {
  id: string;
  model: string;
  said: Said;
  promptTokens: number;
  turn: number;
};

export function completionBody({ id, model, said, promptTokens, turn }: Completion) {
  const tool_calls = toolCallsOf(said, turn);
  const message = { role: "assistant", content: said.content, refusal: null, tool_calls };
  return {
    id,
    object: "chat.completion",
    created: Math.floor(Date.now() / 1000),
    model,
    choices: [{ index: 0, message, logprobs: null, finish_reason: said.finishReason }],
    usage: usageOf(said, promptTokens),
  };
}

/** The same as server-sent events, as many as an engine sends for a short answer. */
export function completionEvents(completion: Completion, includeUsage: boolean): string {
  const { id, model, said, promptTokens, turn } = completion;
  const created = Math.floor(Date.now() / 1000);
  const event = (fields: object) =>
    `data: ${JSON.stringify({ id, object: "chat.completion.chunk", created, model, ...fields })}\n\n`;
  const chunk = (delta: object, finish_reason: string | null = null) =>
    event({ choices: [{ index: 0, delta, logprobs: null, finish_reason }] });
  const events = [chunk({ role: "assistant", content: "" })];
  for (const content of said.content?.match(/\S+\s*|\s+/g) ?? []) events.push(chunk({ content }));
  for (const [index, call] of toolCallsOf(said, turn).entries()) {
    events.push(chunk({ tool_calls: [{ index, ...call }] }));
  }
  events.push(chunk({}, said.finishReason));
  if (includeUsage) events.push(event({ choices: [], usage: usageOf(said, promptTokens) }));
  return `${events.join("")}data: [DONE]\n\n`;
}

function toolCallsOf({ toolCalls }: Said, turn: number) {
  return toolCalls.map((call, index) => ({
    id: `call_${turn}_${index}`,
    type: "function",
    function: call,
  }));
}

function usageOf(said: Said, prompt_tokens: number) {
  const completion_tokens = countSaid(said);
  return { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens };
}

export function modelsBody(model: string, max_model_len: number) {
  const served = { id: model, object: "model", created: 0, owned_by: "rolloutd", root: model };
  return { object: "list", data: [{ ...served, parent: null, max_model_len }] };
}

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
