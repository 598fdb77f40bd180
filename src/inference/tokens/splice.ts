import type { AssistantMessage, Message, ToolSchema } from "../engine.ts";
import type { RenderOptions, Template } from "./chat-template.ts";
import { type MessageForm, toTemplateMessages } from "./template-message.ts";

/** A template with everything that is fixed for a conversation. */
export type Rendering = {
  template: Template;
  form: MessageForm;
  tools: ToolSchema[];
  variables: Record<string, unknown>;
  now: Date;
};

/** A conversation that is over is shown as it is shown once it goes on. */
export function render(
  rendering: Rendering,
  messages: readonly Message[],
  addGenerationPrompt: boolean,
): string {
  const { template, form, tools, variables, now } = rendering;
  const options: RenderOptions = { addGenerationPrompt, variables, now };
  const text = template.render(toTemplateMessages(messages, form), tools, options);
  const { lastEnd } = form;
  if (addGenerationPrompt || !lastEnd || !text.endsWith(lastEnd.sampled)) return text;
  return text.slice(0, -lastEnd.sampled.length) + lastEnd.kept;
}

/**
 * Stands for what the model wrote. No template trims or escapes it, and nobody can know it: what a program prints or
 * a row says would otherwise pass for the end of the model's words, and cut the prompt there.
 */
export const SENTINEL = `zq${crypto.randomUUID().replaceAll("-", "")}qz`;

/**
 * What a template writes behind an assistant's turn.
 *
 * `close` is the turn's own end, such as `<|im_end|>\n`; `next` the new messages and the generation
 * prompt.
 */
export type Splice = { close: string; next: string };

/**
 * What the template writes between the last thing the model wrote and its next turn.
 *
 * The assistant turn is replaced by one with the same tool calls and ids, whose text and arguments
 * are the sentinel; what follows its last occurrence is the splice. So only the end of the two
 * renderings must agree, and a template that changes how it shows the turn itself (Qwen3's empty
 * thinking) does not matter here.
 *
 * Returns null when the template changes what follows the turn once there are new messages.
 *
 * @throws ServiceError `template_refused`
 */
export function spliceAfter(
  rendering: Rendering,
  before: readonly Message[],
  assistant: AssistantMessage,
  added: readonly Message[],
): Splice | null {
  const standIn = withSentinel(assistant, rendering.form);
  const closed = render(rendering, [...before, standIn], false);
  const open = render(rendering, [...before, standIn, ...added], true);
  const closedEnd = closed.slice(closed.lastIndexOf(SENTINEL));
  const openEnd = open.slice(open.lastIndexOf(SENTINEL));
  if (!closed.includes(SENTINEL) || !openEnd.startsWith(closedEnd)) return null;
  const close = closedEnd.slice(SENTINEL.length);
  return { close, next: openEnd.slice(closedEnd.length) };
}

/**
 * What stands before the assistant's turn when a splice is rendered.
 *
 * `head`: the conversation's own beginning, so that a template that repeats the system message later
 * repeats the right one. `first_round`: that and all up to the first tool results, for templates
 * that write those differently (DeepSeek-V3). `whole`: everything, which costs more at each turn.
 */
export type SpliceContext = "head" | "first_round" | "whole";

export function contextOf(before: readonly Message[], context: SpliceContext): Message[] {
  if (context === "whole") return [...before];
  const spoke = before.findIndex(({ role }) => role === "assistant");
  const head = spoke < 0 ? before : before.slice(0, spoke);
  if (context === "head") return head.slice(0, firstOf(head, "user") + 1 || head.length);
  const result = firstOf(before, "tool");
  if (result < 0) return [...before];
  const next = before.findIndex(({ role }, index) => index > result && role !== "tool");
  return next < 0 ? [...before] : before.slice(0, next);
}

function firstOf(messages: readonly Message[], role: Message["role"]): number {
  return messages.findIndex((message) => message.role === role);
}

function withSentinel(assistant: AssistantMessage, form: MessageForm): AssistantMessage {
  const { tool_calls = [] } = assistant;
  const calls = tool_calls.map((call) => ({
    ...call,
    function: { ...call.function, arguments: JSON.stringify({ value: SENTINEL }) },
  }));
  if (calls.length === 0) return { role: "assistant", content: SENTINEL };
  // Some templates show either the text or the calls of a turn.
  const content = form.emptyContent === null ? "" : SENTINEL;
  return { role: "assistant", content, tool_calls: calls };
}
