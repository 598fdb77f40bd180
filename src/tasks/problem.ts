import { z } from "zod";
import { fromJsonText } from "./from-json-text.ts";

const messages = z
  .array(z.looseObject({ role: z.string().optional(), content: z.string() }))
  .min(1);

/** What a row asks: chat messages, their JSON text, or a plain text. */
export const promptSchema = z.preprocess(fromJsonText, z.union([messages, z.string().min(1)]));

export function promptText(prompt: z.output<typeof promptSchema>): string {
  if (typeof prompt === "string") return prompt;
  return prompt.map((message) => message.content).join("\n\n");
}

/** The row's own messages, for a kind that adds nothing to them. */
export function promptMessages(
  prompt: z.output<typeof promptSchema>,
): { role: "system" | "user"; content: string }[] {
  if (typeof prompt === "string") return [{ role: "user", content: prompt }];
  return prompt.map(({ role, content }) => ({
    role: role === "system" ? "system" : "user",
    content,
  }));
}
