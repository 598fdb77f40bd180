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

/** The row's own messages, for a kind that adds nothing to them. */
export function promptMessages(prompt: Prompt): { role: "system" | "user"; content: string }[] {
  return prompt.map(({ role, content }) => ({
    role: role === "system" || role === "developer" ? "system" : "user",
    content,
  }));
}
