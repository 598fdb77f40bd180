import { type NewTokens, type Pieces, type Told, usageOf } from "./format.ts";
import { type ChatRequest, saidBy, toolCallsOf } from "./openai-chat.ts";

const CALL = "<tool_call>";
/** Arguments of calls come in parts of so many characters. */
const PART_CHARS = 8;

/**
 * A chat completion token by token, as vLLM sends it: the role and the prompt's ids first; text as it comes,
 * but from a tool call on only its ids, as what the call says has to be read first.
 */
export function chatPieces(request: ChatRequest, isVllm: boolean): Pieces {
  const withIds = isVllm && request.return_token_ids === true;
  const created = Math.floor(Date.now() / 1000);
  const { model } = request;
  let isBegun = false;
  let isCalling = false;
  /** Space that belongs to the text only where more of it comes. */
  let held = "";
  let shown = "";

  const event = (requestId: string, fields: object) => {
    return {
      id: `chatcmpl-${requestId}`,
      object: "chat.completion.chunk",
      created,
      model,
      ...fields,
    };
  };
  const chunk = (requestId: string, delta: object, fields: object = {}) => {
    const choice = { index: 0, delta, logprobs: null, finish_reason: null, ...fields };
    return event(requestId, { choices: [choice] });
  };
  const begin = (requestId: string, promptIds: readonly number[]) => {
    if (isBegun) return [];
    isBegun = true;
    const first = chunk(requestId, { role: "assistant", content: "" });
    return [{ ...first, ...(withIds && { prompt_token_ids: promptIds }) }];
  };
  const sampled = ({ ids, logprobs }: NewTokens) => ({
    ...(withIds && { token_ids: ids }),
    ...(request.logprobs && { logprobs: { content: logprobs.map((logprob) => ({ logprob })) } }),
  });
  const textOf = ({ text }: NewTokens) => {
    const [before = ""] = isCalling ? [] : text.split(CALL);
    isCalling ||= text.includes(CALL);
    const all = `${held}${before.replace(/<\|[a-z_]+\|>/g, "")}`;
    held = /\s*$/.exec(all)?.[0] ?? "";
    const content = all.slice(0, all.length - held.length);
    shown += content;
    return content;
  };

  return {
    piece(tokens, requestId, promptIds) {
      const content = textOf(tokens);
      const first = begin(requestId, promptIds);
      const isTold = content !== "" || withIds || request.logprobs === true;
      const delta = content === "" ? {} : { content };
      return isTold ? [...first, chunk(requestId, delta, sampled(tokens))] : first;
    },
    last(tokens, told) {
      const { requestId, promptIds } = told;
      const said = saidBy(told);
      const rest = (said.content ?? "").slice(shown.length);
      return [
        ...begin(requestId, promptIds),
        ...(rest === "" ? [] : [chunk(requestId, { content: rest })]),
        ...callDeltas(told).map((delta) => chunk(requestId, { tool_calls: [delta] })),
        chunk(requestId, {}, { ...sampled(tokens), ...endOf(told, withIds) }),
        ...(request.stream_options?.include_usage
          ? [event(requestId, { choices: [], usage: usageOf(told, isVllm) })]
          : []),
      ];
    },
  };
}

function endOf(told: Told, withIds: boolean): object {
  const { finishReason: finish_reason } = saidBy(told);
  return { finish_reason, ...(withIds && { stop_reason: told.sampled.matchedId }) };
}

function callDeltas(told: Told): object[] {
  return toolCallsOf(saidBy(told), told.turn).flatMap(({ function: called, ...call }, index) => {
    const { name, arguments: written } = called;
    const parts = written.match(new RegExp(`[^]{1,${PART_CHARS}}`, "g")) ?? [];
    const head = { index, ...call, function: { name, arguments: "" } };
    return [head, ...parts.map((part) => ({ index, function: { arguments: part } }))];
  });
}
