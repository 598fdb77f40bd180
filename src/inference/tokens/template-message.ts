import { ExactJson } from "../../lib/exact-json.ts";
import type { Message } from "../engine.ts";
import type { TemplateMessage } from "./chat-template.ts";
import { loads } from "./jinja/json-value.ts";
import { Dict } from "./jinja/values.ts";

/** The forms in which a template expects what the field writes in several ways. */
export type MessageForm = {
  /** Of `tool_calls[].function.arguments`: parsed, or the JSON text. */
  arguments: "object" | "text";
  /** Of arguments that are no JSON object: the text, or an object around it for XML dialects. */
  malformed: "text" | "wrapped";
  /** Of an assistant message that has tool calls and no text. */
  emptyContent: "" | null;
  /** Where it looks for reasoning. gpt-oss's takes that, or text beside a call, for what was thought before it. */
  reasoning: "reasoning_content" | "thinking";
  /**
   * What ends the last turn, as the model samples it, and what is in its place once messages follow (gpt-oss);
   * null where both are the same.
   */
  lastEnd: { sampled: string; kept: string } | null;
};

/** Messages are converted once: a conversation renders its whole history at each turn. */
const converted = new WeakMap<Message, { form: MessageForm; message: TemplateMessage }>();

export function toTemplateMessages(
  messages: readonly Message[],
  form: MessageForm,
): TemplateMessage[] {
  return messages.map((message) => {
    const known = converted.get(message);
    if (known?.form === form) return known.message;
    const made = toTemplateMessage(message, form);
    converted.set(message, { form, message: made });
    return made;
  });
}

/** Fields that are not set are absent, because templates ask for their presence. */
function toTemplateMessage(message: Message, form: MessageForm): TemplateMessage {
  if (message.role !== "assistant") return { ...message };
  const { role, content, reasoning_content, tool_calls = [] } = message;
  const calls = tool_calls.map((call) => ({
    ...call,
    function: {
      name: call.function.name,
      arguments: argumentsIn(call.function.arguments, form),
    },
  }));
  const thinks = form.reasoning === "thinking" && Boolean(reasoning_content);
  const text = thinks && calls.length > 0 ? "" : content;
  const thinking = text === content ? reasoning_content : joined(reasoning_content, content);
  return {
    role,
    content: text === "" && calls.length > 0 ? form.emptyContent : text,
    ...(thinks ? { thinking } : reasoning_content ? { reasoning_content } : {}),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

function joined(...texts: (string | undefined)[]): string {
  return texts.filter(Boolean).join("\n\n");
}

function argumentsIn(text: string, form: MessageForm): unknown {
  if (form.arguments === "text") return text;
  if (isJsonObject(text)) return new ExactJson(text);
  return form.malformed === "text" ? text : { malformed: text };
}

function isJsonObject(text: string): boolean {
  try {
    return loads(text) instanceof Dict;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
