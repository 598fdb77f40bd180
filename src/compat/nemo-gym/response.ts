import type { Message } from "../../inference/engine.ts";
import type { RolloutView } from "../../protocol/view.ts";
import type { Trajectory } from "../../trajectory/record.ts";
import { type CallTokens, callTokens } from "./call-tokens.ts";

/** The tokens of one model call, on the last item that it wrote. */
type ItemTokens = {
  prompt_token_ids?: number[];
  generation_token_ids?: number[];
  generation_log_probs?: number[];
};

/** What happened, as OpenAI's Responses API writes it. Source: NeMo Gym 0.5's `NeMoGymResponse`. */
export type OutputItem = ItemTokens &
  (
    | {
        type: "message";
        id: string;
        role: "assistant";
        status: "completed";
        content: { type: "output_text"; text: string; annotations: [] }[];
      }
    | { type: "message"; role: "user"; content: string }
    | { type: "reasoning"; id: string; summary: { type: "summary_text"; text: string }[] }
    | { type: "function_call"; id: string; call_id: string; name: string; arguments: string }
    | { type: "function_call_output"; call_id: string; output: string }
  );

export type GymResponse = {
  id: string;
  object: "response";
  created_at: number;
  model: string;
  parallel_tool_calls: boolean;
  tools: { type: "function"; name: string; description: string; parameters: unknown }[];
  tool_choice: "auto";
  output: OutputItem[];
  usage?: Usage;
};

type Usage = {
  input_tokens: number;
  output_tokens: number;
  total_tokens: number;
  input_tokens_details: { cached_tokens: number; cache_write_tokens: number };
  output_tokens_details: { reasoning_tokens: number };
};

/**
 * A rollout's conversation behind its prompt. `broken` says why not all calls have tokens although the rollout
 * was by tokens: what is there is the longest beginning that a trainer can put together.
 */
export function gymResponse(
  view: RolloutView,
  trajectory: Trajectory | null,
  model: string,
): { response: GymResponse; broken: string | null } {
  const tokens: CallTokens = trajectory ? callTokens(trajectory) : { calls: [], broken: null };
  const usage = trajectory && usageOf(trajectory);
  const response: GymResponse = {
    id: `resp_${view.id}`,
    object: "response",
    created_at: Math.floor(Date.parse(view.created_at) / 1000),
    model,
    parallel_tool_calls: false,
    tools: (trajectory?.tools ?? []).map((tool) => ({ type: "function", ...tool.function })),
    tool_choice: "auto",
    output: trajectory ? itemsOf(trajectory, tokens.calls) : [],
    ...(usage && { usage }),
  };
  return { response, broken: tokens.broken };
}

function itemsOf({ messages, turns }: Trajectory, calls: ItemTokens[]): OutputItem[] {
  const turnOf = new Map(turns.map(({ message }, turn) => [message, turn]));
  const first = turns[0]?.message ?? messages.length;
  const items: OutputItem[] = [];
  for (const [index, message] of messages.entries()) {
    if (index < first) continue;
    const written = itemsOfMessage(message, index);
    const turn = turnOf.get(index);
    const last = written.at(-1);
    if (turn !== undefined && last) Object.assign(last, calls[turn]);
    items.push(...written);
  }
  return items;
}

function itemsOfMessage(message: Message, index: number): OutputItem[] {
  switch (message.role) {
    case "system":
    case "user":
      return [{ type: "message", role: "user", content: message.content }];
    case "tool":
      return [
        { type: "function_call_output", call_id: message.tool_call_id, output: message.content },
      ];
    case "assistant":
      return assistantItems(message, index);
  }
}

/** An assistant's message is at least one item, because its tokens need a place. */
function assistantItems(
  { content, reasoning_content, tool_calls = [] }: Extract<Message, { role: "assistant" }>,
  index: number,
): OutputItem[] {
  const items: OutputItem[] = [];
  if (reasoning_content) {
    const summary = [{ type: "summary_text" as const, text: reasoning_content }];
    items.push({ type: "reasoning", id: `rs_${index}`, summary });
  }
  if (content !== "" || tool_calls.length === 0) {
    items.push({
      ...{ type: "message", id: `msg_${index}`, role: "assistant", status: "completed" },
      content: [{ type: "output_text", text: content, annotations: [] }],
    } as OutputItem);
  }
  for (const { id, function: called } of tool_calls) {
    items.push({ type: "function_call", id: `fc_${id}`, call_id: id, ...called });
  }
  return items;
}

/** Null unless every call's tokens were counted: half a count is worse than none. */
function usageOf({ turns }: Trajectory): Usage | null {
  let [input_tokens, output_tokens, cached_tokens] = [0, 0, 0];
  if (turns.length === 0) return null;
  for (const turn of turns) {
    if (turn.prompt_tokens === null || turn.completion_tokens === null) return null;
    input_tokens += turn.prompt_tokens;
    output_tokens += turn.completion_tokens;
    cached_tokens += turn.cached_tokens ?? 0;
  }
  return {
    input_tokens,
    output_tokens,
    total_tokens: input_tokens + output_tokens,
    input_tokens_details: { cached_tokens, cache_write_tokens: 0 },
    output_tokens_details: { reasoning_tokens: 0 },
  };
}
