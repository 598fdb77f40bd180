import type { Message } from "../inference/engine.ts";

/** A kind's own texts, kept as files beside it. `{{name}}` stands for a field of the instance. */
export type PromptTexts = { system: string | null; user: string };

/** What a rollout says instead; an empty system prompt leaves it out. */
export type PromptChanges = { system_prompt?: string; user_prompt?: string };

/** The first messages of a conversation. A placeholder that names no field stays as it is. */
export function renderPrompt(
  texts: PromptTexts,
  changes: PromptChanges,
  fields: Record<string, string>,
): Message[] {
  const fill = (text: string) =>
    text
      .trimEnd()
      .replace(/\{\{(\w+)\}\}/g, (whole, name: string) =>
        Object.hasOwn(fields, name) ? (fields[name] as string) : whole,
      );
  const system = changes.system_prompt ?? texts.system;
  const user: Message = { role: "user", content: fill(changes.user_prompt ?? texts.user) };
  return system ? [{ role: "system", content: fill(system) }, user] : [user];
}
