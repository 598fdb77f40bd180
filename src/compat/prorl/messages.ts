import type { AssistantMessage, Message } from "../../inference/engine.ts";
import type { Trajectory } from "../../trajectory/record.ts";
import type { MessageTokens } from "./message-tokens.ts";

/** A message as ProRL's clients read it. `content` is always text, and a call's arguments are JSON text. */
export type ProrlMessage = {
  role: Message["role"];
  content: string;
  tool_calls?: { name: string; arguments: string }[];
} & Partial<MessageTokens & { weight_version: string | null }>;

export type ProrlMessages = { messages: ProrlMessage[]; endProperly: boolean };

/**
 * The conversation up to the model's last words: trainers take the last message for an assistant's.
 *
 * @param tokens of each message, where the rollout was in token mode
 * @param endThinking upstream's `ensure_thinking_end_properly`: a turn whose thinking has no end is closed,
 * its calls become text of it, and the conversation ends there
 */
export function prorlMessages(
  { messages, turns }: Pick<Trajectory, "messages" | "turns">,
  { tokens, endThinking }: { tokens: MessageTokens[] | null; endThinking: boolean },
): ProrlMessages {
  const last = messages.findLastIndex(({ role }) => role === "assistant");
  const versions = new Map(turns.map((turn) => [turn.message, turn.weight_version]));
  const shown: ProrlMessage[] = [];
  for (const [index, message] of messages.slice(0, last + 1).entries()) {
    const fields = tokens?.[index] ?? {};
    if (message.role !== "assistant") {
      shown.push({ role: message.role, content: message.content, ...fields });
      continue;
    }
    const said = { ...assistant(message), ...fields, weight_version: versions.get(index) ?? null };
    if (endThinking && thinksOn(said.content)) {
      shown.push(closed(said));
      return { messages: shown, endProperly: false };
    }
    shown.push(said);
  }
  return { messages: shown, endProperly: true };
}

function assistant({ content, reasoning_content, tool_calls }: AssistantMessage): ProrlMessage {
  const thought = reasoning_content ? `<think>\n${reasoning_content}\n</think>\n\n` : "";
  const calls = (tool_calls ?? []).map((call) => ({
    name: call.function.name,
    arguments: call.function.arguments,
  }));
  return {
    role: "assistant",
    content: thought + content,
    ...(calls.length > 0 && { tool_calls: calls }),
  };
}

function thinksOn(content: string): boolean {
  return content.includes("<think>") && !content.includes("</think>");
}

function closed({ tool_calls = [], content, ...rest }: ProrlMessage): ProrlMessage {
  const calls = tool_calls.map((call) => `<tool_call>\n${JSON.stringify(call)}\n</tool_call>`);
  return { ...rest, content: `${[content, ...calls].join("\n")}\n</think>` };
}
