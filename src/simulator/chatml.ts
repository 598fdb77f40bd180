import type { Said, SimulatedMessage } from "./conversation.ts";

const START = "<|im_start|>";
const END = "<|im_end|>";
const RESPONSE = /<tool_response>\n?([\s\S]*?)\n?<\/tool_response>/g;

/** ChatML with tools, as Qwen's models have it. Every tag of the engine's is one token. */
export const CHAT_TEMPLATE = `{%- if tools %}
    {{- '<|im_start|>system\n' }}
    {%- if messages[0].role == 'system' %}
        {{- messages[0].content + '\n\n' }}
    {%- endif %}
    {{- '# Tools\n\nYou may call these functions:\n<tools>' }}
    {%- for tool in tools %}
        {{- '\n' + (tool | tojson) }}
    {%- endfor %}
    {{- '\n</tools><|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
    {%- if message.role == 'system' and loop.first and tools %}
    {%- elif message.role == 'assistant' %}
        {{- '<|im_start|>assistant\n' + (message.content or '') }}
        {%- for call in message.tool_calls or [] %}
            {{- '' if loop.first and not message.content else '\n' }}
            {{- '<tool_call>\n{"name": "' + call.function.name + '", "arguments": ' }}
            {%- if call.function.arguments is string %}
                {{- call.function.arguments }}
            {%- else %}
                {{- call.function.arguments | tojson }}
            {%- endif %}
            {{- '}\n</tool_call>' }}
        {%- endfor %}
        {{- '<|im_end|>\n' }}
    {%- elif message.role == 'tool' %}
        {%- if loop.first or messages[loop.index0 - 1].role != 'tool' %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\n<tool_response>\n' + message.content + '\n</tool_response>' }}
        {%- if loop.last or messages[loop.index0 + 1].role != 'tool' %}
            {{- '<|im_end|>\n' }}
        {%- endif %}
    {%- else %}
        {{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>\n' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
{%- endif %}`;

/** What the template makes of messages, without the interpreter, which would cost more than all else that a call does. */
export function renderChat(
  messages: readonly SimulatedMessage[],
  tools: unknown[],
  addGenerationPrompt = true,
): string {
  let text = "";
  const [first] = messages;
  const system = tools.length > 0 && first?.role === "system" ? first : null;
  if (tools.length > 0) {
    const lines = tools.map((tool) => `\n${pythonJson(tool)}`).join("");
    const intro = system === null ? "" : `${system.content}\n\n`;
    const offered = `# Tools\n\nYou may call these functions:\n<tools>${lines}\n</tools>`;
    text += block("system", intro + offered);
  }
  for (const [index, message] of messages.entries()) {
    if (message === system) continue;
    if (message.role !== "tool") {
      text += block(message.role, textOf(message));
      continue;
    }
    if (messages[index - 1]?.role !== "tool") text += `${START}user`;
    text += `\n<tool_response>\n${message.content}\n</tool_response>`;
    if (messages[index + 1]?.role !== "tool") text += `${END}\n`;
  }
  return addGenerationPrompt ? `${text}${START}assistant\n` : text;
}

function block(role: string, text: string): string {
  return `${START}${role}\n${text}${END}\n`;
}

/** As Python writes it, and with it each template's `tojson`. */
function pythonJson(value: unknown): string {
  if (Array.isArray(value)) return `[${value.map(pythonJson).join(", ")}]`;
  if (typeof value !== "object" || value === null) return JSON.stringify(value);
  const entries = Object.entries(value).map(
    ([key, inner]) => `${JSON.stringify(key)}: ${pythonJson(inner)}`,
  );
  return `{${entries.join(", ")}}`;
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
