import { ServiceError } from "../../errors.ts";
import type { Message, ToolCall } from "../../inference/engine.ts";

type Item = Record<string, unknown>;

/** Types of content parts that are text. */
const TEXT = ["input_text", "output_text", "text", undefined];

/**
 * A prompt of the Responses API as messages: text in messages of any role, and calls of tools with what they gave.
 *
 * @throws ServiceError `invalid_field` naming an item that no text model can be shown
 */
export function messagesOf(input: unknown): Message[] {
  if (typeof input === "string") return [{ role: "user", content: input }];
  if (!Array.isArray(input)) throw wrong("", "is missing or no list of messages");
  const messages: Message[] = [];
  for (const [index, value] of input.entries()) add(messages, value, index);
  return messages;
}

function add(messages: Message[], value: unknown, index: number): void {
  const item = (value ?? {}) as Item;
  switch (item.type ?? "message") {
    case "message":
      messages.push(messageOf(item, index));
      return;
    case "function_call": {
      const call = callOf(item, index);
      const last = messages.at(-1);
      if (last?.role === "assistant") last.tool_calls = [...(last.tool_calls ?? []), call];
      else messages.push({ role: "assistant", content: "", tool_calls: [call] });
      return;
    }
    case "function_call_output": {
      const content = typeof item.output === "string" ? item.output : JSON.stringify(item.output);
      messages.push({
        role: "tool",
        content,
        tool_call_id: textOf(item.call_id, index, "call_id"),
      });
      return;
    }
    default:
      throw wrong(
        `[${index}]`,
        `is a ${item.type}, which is not supported: only messages, function_call and function_call_output are`,
      );
  }
}

function messageOf({ role, content }: Item, index: number): Message {
  const text = contentOf(content, index);
  if (role === "system" || role === "developer") return { role: "system", content: text };
  if (role === "user" || role === "assistant") return { role, content: text };
  throw wrong(`[${index}].role`, `is "${role}", which is not supported`);
}

function contentOf(content: unknown, index: number): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content)) throw wrong(`[${index}].content`, "is no text");
  return content
    .map((part: Item, at) => {
      if (TEXT.includes(part?.type as string) && typeof part?.text === "string") return part.text;
      const what = `is ${part?.type ?? "no text"}, and models are shown text only`;
      throw wrong(`[${index}].content[${at}]`, what);
    })
    .join("");
}

function callOf(item: Item, index: number): ToolCall {
  return {
    id: textOf(item.call_id, index, "call_id"),
    type: "function",
    function: {
      name: textOf(item.name, index, "name"),
      arguments: textOf(item.arguments, index, "arguments"),
    },
  };
}

function textOf(value: unknown, index: number, key: string): string {
  if (typeof value === "string") return value;
  throw wrong(`[${index}].${key}`, "is missing");
}

function wrong(at: string, what: string): ServiceError {
  const field = `responses_create_params.input${at}`;
  return new ServiceError("invalid_field", `${field} ${what}`, { field });
}
