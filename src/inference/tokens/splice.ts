import { ServiceError } from "../../errors.ts";
import type { AssistantMessage, Message, ToolCall, ToolSchema } from "../engine.ts";
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
 * Stands behind what the model wrote. No template trims or escapes it, and nobody can know it: what a program prints or
 * a row says would otherwise pass for the end of the model's words, and cut the prompt there.
 */
export const SENTINEL = `zq${crypto.randomUUID().replaceAll("-", "")}qz`;

/**
 * What the template writes behind an assistant's turn.
 *
 * `close` is the turn's own end, such as `<|im_end|>\n`; `next` the new messages and the generation
 * prompt. `hidden` is what of the turn the template leaves out, for people; null where it shows all of it.
 */
export type Splice = { close: string; next: string; hidden: string | null };

/**
 * What the template writes between the last thing the model wrote and its next turn.
 *
 * Each part of the assistant's turn gets the sentinel at its end: what follows the last one is the splice. Both
 * renderings, with the new messages and without them, begin with what ends the turn.
 *
 * Returns null when the template shows nothing of the turn.
 *
 * @throws ServiceError `template_refused`
 */
export function spliceAfter(
  rendering: Rendering,
  before: readonly Message[],
  assistant: AssistantMessage,
  added: readonly Message[],
): Splice | null {
  const { marked, marks } = withSentinels(assistant);
  const openText = render(rendering, [...before, marked, ...added], true);
  const open = behindSentinel(openText);
  const closed = behindSentinel(render(rendering, [...before, marked], false));
  if (closed === null || open === null) return null;
  const hidden = marks.find(({ mark }) => !openText.includes(mark))?.part ?? null;
  const close = sharedStart(closed, open);
  return { close, next: open.slice(close.length), hidden };
}

/** The same behind the beginning of a conversation only, which costs less; null also where the template refuses that. */
export function spliceNear(
  rendering: Rendering,
  before: readonly Message[],
  assistant: AssistantMessage,
  added: readonly Message[],
): Splice | null {
  const asked = before.findIndex(({ role }) => role === "user");
  try {
    return spliceAfter(rendering, before.slice(0, asked + 1), assistant, added);
  } catch (error) {
    if (error instanceof ServiceError && error.code === "template_refused") return null;
    throw error;
  }
}

function behindSentinel(text: string): string | null {
  const at = text.lastIndexOf(SENTINEL);
  return at < 0 ? null : text.slice(at + SENTINEL.length);
}

/** What both begin with, without the beginning of a marker that only one of them has whole. */
function sharedStart(a: string, b: string): string {
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  return at === a.length ? a : a.slice(0, at).replace(/[<[][^<>[\]\s]*$/, "");
}

type Mark = { part: string; mark: string };

function withSentinels(assistant: AssistantMessage): { marked: AssistantMessage; marks: Mark[] } {
  const { reasoning_content, content, tool_calls = [] } = assistant;
  const marks: Mark[] = [];
  const mark = (part: string) => {
    const made = `${marks.length}${SENTINEL}`;
    marks.push({ part, mark: made });
    return made;
  };
  const reasoning = reasoning_content && reasoning_content + mark("reasoning");
  // Some templates show either the text or the calls of a turn.
  const text = content === "" && tool_calls.length > 0 ? "" : content + mark("text");
  const calls = tool_calls.map((call): ToolCall => {
    const { name, arguments: args } = call.function;
    return { ...call, function: { name, arguments: longer(args, mark(`call of ${name}`)) } };
  });
  const marked: AssistantMessage = {
    role: "assistant",
    content: text,
    ...(reasoning && { reasoning_content: reasoning }),
    ...(calls.length > 0 && { tool_calls: calls }),
  };
  return { marked, marks };
}

/** Arguments with one more at their end. */
function longer(args: string, value: string): string {
  const end = args.trimEnd();
  if (!end.endsWith("}")) return args + value;
  const more = `"${SENTINEL.slice(0, 8)}": "${value}"}`;
  return /^\s*\{\s*\}$/.test(end) ? `{${more}` : `${end.slice(0, -1)}, ${more}`;
}
