import { type Json, lengthOf, type Streamed } from "./streamed.ts";

/**
 * A chat completion in pieces, put together into the shape of a whole one: texts and the arguments of calls
 * are what has come since the last piece, ids and log-probabilities too, and the prompt's ids come once.
 *
 * Source: OpenAI's `chat.completion.chunk`; vLLM's `token_ids`, `prompt_token_ids` and `reasoning`; some
 * servers leave out the index of a call.
 */
export const streamedChat: Streamed = {
  ask: { stream: true, stream_options: { include_usage: true } },
  add(reply, piece) {
    const { choices, object: _, ...rest } = piece;
    const whole = (reply?.choices as [Json] | undefined)?.[0] ?? { message: {}, pieces: 0 };
    const list = Array.isArray(choices) ? (choices as Json[]) : [];
    const choice = list.find(({ index }) => (index ?? 0) === 0);
    if (choice) addChoice(whole, choice);
    return { ...reply, ...known(rest), choices: [whole] };
  },
  count: ({ choices }) => (choices as [{ pieces: number }])[0].pieces,
  isWhole: ({ choices }) => typeof (choices as [Json])[0].finish_reason === "string",
};

function addChoice(whole: Json, { delta, token_ids, logprobs, ...rest }: Json): void {
  const ids = listOf(token_ids);
  const content = listOf((logprobs as Json | null | undefined)?.content);
  let isSampled = ids.length > 0 || content.length > 0;
  if (Array.isArray(token_ids)) {
    whole.token_ids ??= [];
    for (const id of ids) (whole.token_ids as unknown[]).push(id);
  }
  if (content.length > 0) {
    whole.logprobs ??= { content: [] };
    for (const item of content) (whole.logprobs as { content: unknown[] }).content.push(item);
  }
  const message = whole.message as Json;
  for (const [key, value] of Object.entries((delta ?? {}) as Json)) {
    if (key === "tool_calls") {
      for (const call of listOf(value)) addCall(message, call as Json);
      isSampled ||= lengthOf(value) > 0;
    } else if (typeof value === "string" && key !== "role") {
      message[key] = `${Object.hasOwn(message, key) ? (message[key] ?? "") : ""}${value}`;
      isSampled ||= value !== "";
    }
  }
  Object.assign(whole, known(rest));
  if (isSampled) whole.pieces = (whole.pieces as number) + 1;
}

type Call = { index: unknown; id: unknown; function: Json };

/** A further piece of a call says its index; without one, a new id or name begins the next call. */
function addCall(message: Json, piece: Json): void {
  message.tool_calls ??= [];
  const calls = message.tool_calls as Call[];
  const { name, arguments: written } = (piece.function ?? {}) as Json;
  const { index, id } = piece;
  const last = calls.at(-1);
  const goesOn = id ? last?.id === id : !name;
  const known =
    typeof index === "number" ? calls.find((call) => call.index === index) : goesOn && last;
  if (!known) {
    calls.push({ index, id, function: { name, arguments: written ?? "" } });
    return;
  }
  known.id ||= id;
  known.function.name ||= name;
  if (typeof written === "string")
    known.function.arguments = `${known.function.arguments}${written}`;
}

function listOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}

function known(fields: Json): Json {
  const given = ([key, value]: [string, unknown]) => value !== null && key !== "__proto__";
  return Object.fromEntries(Object.entries(fields).filter(given));
}
