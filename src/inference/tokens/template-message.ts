import { keepSource } from "../../lib/exact-json.ts";
import type { AssistantMessage, Message } from "../engine.ts";
import type { TemplateMessage } from "./chat-template.ts";
import { loads } from "./jinja/json-value.ts";
import { Dict } from "./jinja/values.ts";

/** The forms in which a template expects what the field writes in several ways. */
export type MessageForm = {
  /** Of `tool_calls[].function.arguments`: parsed, or the JSON text. */
  arguments: "object" | "text";
  /** Of a turn with several calls: shown as they are, or each as a turn with its result behind it. */
  calls: "together" | "one by one";
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
  const given = form.calls === "together" ? messages : oneByOne(messages);
  return given.map((message) => {
    const known = converted.get(message);
    if (known?.form === form) return known.message;
    const made = toTemplateMessage(message, form);
    converted.set(message, { form, message: made });
    return made;
  });
}

/** Made once for each turn, so that it is also converted once. */
const alone = new WeakMap<AssistantMessage, AssistantMessage[]>();

function oneByOne(messages: readonly Message[]): Message[] {
  const results = new Set<Message>();
  return messages.flatMap((message, at): Message[] => {
    if (results.has(message)) return [];
    if (message.role !== "assistant" || (message.tool_calls?.length ?? 0) < 2) return [message];
    const turns = alone.get(message) ?? turnsOfOneCall(message);
    alone.set(message, turns);
    return turns.flatMap((turn): Message[] => {
      const id = turn.tool_calls?.[0]?.id;
      const result = messages
        .slice(at)
        .find((one) => one.role === "tool" && one.tool_call_id === id);
      if (result) results.add(result);
      return result ? [turn, result] : [turn];
    });
  });
}

function turnsOfOneCall({ tool_calls = [], ...said }: AssistantMessage): AssistantMessage[] {
  return tool_calls.map((call, at) => {
    const rest = at === 0 ? said : { role: "assistant" as const, content: "" };
    return { ...rest, tool_calls: [call] };
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
  // No engine renders arguments that are no object, so that one is made of them.
  return isJsonObject(text) ? keepSource({}, text) : { malformed: text };
}

function isJsonObject(text: string): boolean {
  try {
    return loads(text) instanceof Dict;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}
