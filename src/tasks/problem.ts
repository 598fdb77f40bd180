import { z } from "zod";
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

/** The row's own messages, for a kind that adds nothing to them. */
export function promptMessages(prompt: Prompt): { role: "system" | "user"; content: string }[] {
  return prompt.map(({ role, content }) => ({
    role: role === "system" || role === "developer" ? "system" : "user",
    content,
  }));
}
