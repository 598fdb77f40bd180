import type { Said, SimulatedMessage } from "./conversation.ts";

const START = "<|im_start|>";
const END = "<|im_end|>";
const RESPONSE = /<tool_response>\n?([\s\S]*?)\n?<\/tool_response>/g;

/** Messages as text, as Qwen's chat template has them, with the generation prompt at the end if wanted. */
export function renderChat(
  messages: readonly SimulatedMessage[],
  tools: unknown[],
  addGenerationPrompt = true,
): string {
  const turns: { role: string; text: string }[] = [];
  for (const message of messages) {
    if (message.role !== "tool") {
      turns.push({ role: message.role, text: textOf(message) });
      continue;
    }
    const text = `<tool_response>\n${message.content}\n</tool_response>`;
    const last = turns.at(-1);
    if (last?.role === "tool") last.text += `\n${text}`;
    else turns.push({ role: "tool", text });
  }
  const offered = tools.length === 0 ? "" : block("system", toolsText(tools));
  const shown = turns.map(({ role, text }) => block(role === "tool" ? "user" : role, text));
  const prompt = addGenerationPrompt ? `${START}assistant\n` : "";
  return `${offered}${shown.join("")}${prompt}`;
}

function block(role: string, text: string): string {
  return `${START}${role}\n${text}${END}\n`;
}

function toolsText(tools: unknown[]): string {
  const lines = tools.map((tool) => JSON.stringify(tool)).join("\n");
  return `# Tools\n\n<tools>\n${lines}\n</tools>`;
}

function textOf(message: SimulatedMessage): string {
  if (message.role !== "assistant") return message.content;
  const calls = message.tool_calls ?? [];
  return spokenText({ content: message.content, toolCalls: calls.map((call) => call.function) });
}

/** What a model writes to say something: text, then its calls in Hermes' dialect. */
export function spokenText({ content, toolCalls }: Pick<Said, "content" | "toolCalls">): string {
  const calls = toolCalls.map(
    ({ name, arguments: args }) =>
      `<tool_call>\n{"name": ${JSON.stringify(name)}, "arguments": ${args}}\n</tool_call>`,
  );
  return [content ?? "", ...calls].filter((part) => part !== "").join("\n");
}

export type ParsedChat = {
  messages: SimulatedMessage[];
  /** What the assistant has said already in the turn that is to be gone on with. */
  begun: string;
};

/**
 * The conversation in a prompt of ChatML, whoever rendered it; null where there is none. Tool calls
 * stay in the text of their message.
 */
export function parseChat(prompt: string): ParsedChat | null {
  const [, ...blocks] = prompt.split(START);
  const open = blocks.at(-1);
  if (open === undefined || !open.startsWith("assistant") || open.includes(END)) return null;
  const messages = blocks.slice(0, -1).flatMap((text) => {
    const closed = text.split(END)[0] ?? "";
    const newline = closed.indexOf("\n");
    const role = newline < 0 ? closed : closed.slice(0, newline);
    return messagesOf(role, newline < 0 ? "" : closed.slice(newline + 1));
  });
  return { messages, begun: open.slice("assistant\n".length) };
}

function messagesOf(role: string, content: string): SimulatedMessage[] {
  if (role === "assistant") return [{ role, content }];
  if (role === "system" || role === "developer") return [{ role, content }];
  const responses = [...content.matchAll(RESPONSE)].map(([, text = ""]) => text);
  if (role === "tool" && responses.length === 0) responses.push(content);
  if (responses.length === 0) return [{ role: "user", content }];
  return responses.map((text) => ({ role: "tool", content: text, tool_call_id: "" }));
}
