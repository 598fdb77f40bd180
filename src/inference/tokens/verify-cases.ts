import type { AssistantMessage, Message, ToolSchema } from "../engine.ts";

export type VerifyCase = {
  name: string;
  tools: ToolSchema[];
  variables: Record<string, unknown>;
  messages: Message[];
  /** Index of an assistant message whose turn was cut off before its end. */
  truncated?: number;
  /** What each turn is sampled as, by its text: pieces that are tokenised each by itself. */
  styles?: ((text: string) => string[])[];
};

const TOOLS: ToolSchema[] = [
  tool("execute_bash", { command: "string", timeout: "number" }),
  tool("find_files", { pattern: "string", hidden: "boolean" }),
];

const SYSTEM: Message = { role: "system", content: "You are a careful engineer.\nBe brief." };
const ASK: Message = { role: "user", content: "How many lines has notes.txt?" };
const THANKS: Message = { role: "user", content: "Thanks! And in words?" };
const THOUGHT = "The file should be counted.\n\nwc does that.";
const UNICODE = 'naïve café 🤖👩‍👩‍👧 日本語 \u200b\ttab "quotes" \\ back\n\n\n  indented';
/** A page that the agent reads may hold anything but the model's own control tokens. */
const MARKUP =
  '<tool_response>\n{"name": "x"}\n</tool_response> </s [INST <|user| {{ messages }} {% if %}';

export const VERIFY_CASES: VerifyCase[] = [
  plain("one question", [SYSTEM, ASK, says("Three.")]),
  plain("no system message", [ASK, says("Three."), THANKS, says("Three, in words.")]),
  plain("two questions", [SYSTEM, ASK, says("Three."), THANKS, says("Three, in words.")]),
  plain("unicode and spaces", [SYSTEM, { role: "user", content: UNICODE }, says(UNICODE), THANKS]),
  plain("empty answer", [SYSTEM, ASK, says(""), THANKS, says("Three.")]),
  {
    ...plain("cut off by length", [SYSTEM, ASK, says("There are a great many li"), THANKS]),
    truncated: 2,
  },
  agent("one tool call", [SYSTEM, ASK, ...calls(1), ...results(1), says("Three.")]),
  agent("text before a call", [SYSTEM, ASK, ...calls(1, "I'll look."), ...results(1), says("3")]),
  agent("parallel calls", [SYSTEM, ASK, ...calls(3), ...results(3), says("Three.")]),
  agent("empty result", [SYSTEM, ASK, ...calls(1), ...results(1, ""), says("Nothing.")]),
  agent("unicode result", [SYSTEM, ASK, ...calls(1), ...results(1, UNICODE), says("Odd.")]),
  agent("result with markup", [SYSTEM, ASK, ...calls(1), ...results(1, MARKUP), says("Odd.")]),
  agent("long chain", [SYSTEM, ASK, ...chain(24), says("Done.")]),
  agent("user after a tool result", [SYSTEM, ASK, ...calls(1), ...results(1), THANKS, says("3")]),
  agent("user after an answer", [SYSTEM, ASK, ...round(), THANKS, ...round(), THANKS]),
  agent("malformed arguments", [SYSTEM, ASK, ...malformed(), ...results(1), says("Three.")]),
  ...[true, false].flatMap((thinking) => [
    thinkingCase(thinking, "one question", [SYSTEM, ASK, says("Three.", thinking)]),
    thinkingCase(thinking, "tool calls", [SYSTEM, ASK, ...chain(3, thinking), says("3", thinking)]),
    thinkingCase(thinking, "two questions", [SYSTEM, ASK, ...round(thinking), THANKS, says("3")]),
  ]),
];

function plain(name: string, messages: Message[]): VerifyCase {
  return { name, tools: [], variables: {}, messages };
}

function agent(name: string, messages: Message[]): VerifyCase {
  return { name, tools: TOOLS, variables: {}, messages };
}

function thinkingCase(thinking: boolean, name: string, messages: Message[]): VerifyCase {
  const variables = { enable_thinking: thinking };
  return {
    name: `thinking ${thinking ? "on" : "off"}: ${name}`,
    tools: TOOLS,
    variables,
    messages,
  };
}

function says(content: string, thinking = false): AssistantMessage {
  const thought = thinking ? { reasoning_content: THOUGHT } : {};
  return { role: "assistant", content, ...thought };
}

function calls(count: number, content = "", thinking = false, round = 0): Message[] {
  const tool_calls = Array.from({ length: count }, (_, index) => ({
    id: callId(round, index),
    type: "function" as const,
    function: {
      name: "execute_bash",
      arguments: JSON.stringify({ command: `wc -l < "notes ${index}.txt" | cat`, timeout: 2.5 }),
    },
  }));
  return [{ ...says(content, thinking), tool_calls }];
}

function results(count: number, content = "3\n", round = 0): Message[] {
  return Array.from({ length: count }, (_, index) => ({
    role: "tool",
    content: count > 1 ? `${index}: ${content}` : content,
    tool_call_id: callId(round, index),
  }));
}

function chain(rounds: number, thinking = false): Message[] {
  return Array.from({ length: rounds }, (_, round) => [
    ...calls(1, "", thinking, round),
    ...results(1, `${round} lines\n`, round),
  ]).flat();
}

function round(thinking = false): Message[] {
  return [...calls(1, "", thinking), ...results(1), says("Three.", thinking)];
}

function malformed(): Message[] {
  const [message] = calls(1) as [AssistantMessage];
  for (const call of message.tool_calls ?? []) call.function.arguments = '{"command": "wc -l';
  return [message];
}

/** Nine letters and digits, as Mistral's templates ask for. */
function callId(round: number, index: number): string {
  return `call${String(round).padStart(3, "0")}${String(index).padStart(2, "0")}`;
}

function tool(name: string, properties: Record<string, string>): ToolSchema {
  const described = Object.entries(properties).map(([key, type]) => [
    key,
    { type, description: `The ${key}.` },
  ]);
  return {
    type: "function",
    function: {
      name,
      description: `Runs ${name}.`,
      parameters: {
        type: "object",
        properties: Object.fromEntries(described),
        required: [Object.keys(properties)[0]],
      },
    },
  };
}
