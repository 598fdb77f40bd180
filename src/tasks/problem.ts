import { z } from "zod";
import type { Message, ToolCall } from "../inference/engine.ts";
import { fromJsonText } from "./from-json-text.ts";

const contentSchema = z.union([
  z.string(),
  // The parts of the Responses API and of newer chats.
  z
    .array(z.looseObject({ text: z.string() }))
    .transform((parts) => parts.map(({ text }) => text).join("")),
]);

/** What a row asks: chat messages, their JSON text, or a plain text, which becomes the user's message. */
export const promptSchema = z.preprocess(
  (value) => {
    const prompt = fromJsonText(value);
    return typeof prompt === "string" && prompt !== ""
      ? [{ role: "user", content: prompt }]
      : prompt;
  },
  z.array(z.looseObject({ role: z.string().optional(), content: contentSchema })).min(1),
);

type Prompt = z.output<typeof promptSchema>;

export function promptText(prompt: Prompt): string {
  return prompt.map((message) => message.content).join("\n\n");
}

/**
 * A text without what a dataset appends to each, and the blanks around that.
 *
 * @param end begins with a word and ends with `$`: blanks at either end of it would take time that grows with the square
 * of those in a row
 */
export function withoutEnd(text: string, end: RegExp): string {
  const trimmed = text.trimEnd();
  const without = trimmed.replace(end, "");
  return without === trimmed ? text : without.trimEnd();
}

/** The row's own messages, for a kind that adds nothing to them: also what was said and called before. */
export function promptMessages(prompt: Prompt): Message[] {
  return prompt.map(({ role, content, tool_calls: calls, tool_call_id: id }): Message => {
    if (role === "system" || role === "developer") return { role: "system", content };
    if (role === "tool" && typeof id === "string") return { role, content, tool_call_id: id };
    if (role !== "assistant") return { role: "user", content };
    return { role, content, ...(Array.isArray(calls) && { tool_calls: calls as ToolCall[] }) };
  });
}
