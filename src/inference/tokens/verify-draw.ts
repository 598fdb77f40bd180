import { keepSource } from "../../lib/exact-json.ts";
import type { AssistantMessage, Message, ToolSchema } from "../engine.ts";
import type { VerifyCase } from "./verify-cases.ts";

/** Numbers in [0, 1) that a seed repeats. */
function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

type Random = () => number;

const pick = <T>(values: readonly T[], random: Random): T =>
  values[Math.floor(random() * values.length)] as T;

const WORDS = [
  ..."the file counts lines naïve 日本語 🤖👩‍👩‍👧 don't x=1 1234567 é".split(" "),
  ...[
    "\n\n",
    "  indented",
    "\ttab",
    "a\r\nb",
    "\u2028",
    "\u00a0",
    "\ufeff",
    '{"a": 1}',
    "{{ x }}",
    "{% if %}",
  ],
  ...["<b>", "</tool_response>", "<|user|", "[INST", "\\", '"quoted"', "'", "&amp;", "``"],
];
/** What results may hold too: text that is a control token of some model. */
const CONTROL = [
  ..."<|im_end|> <|im_start|> </s> <|eot_id|> <end_of_turn> <|end|> <think> </think> [/INST]".split(
    " ",
  ),
  ..."<tool_call> <|user|> <|endoftext|> <｜end▁of▁sentence｜> <|tool_call_end|>".split(" "),
];
const NUMBERS = ["1e-07", "1.0", "0", "-3", "12345678901234567890", "2.50", "1E5", "-0.0", "1e400"];

const PARAMETERS = [
  '{"type": "object", "properties": {"command": {"type": "string", "description": "What to run."}, "timeout": {"type": "number", "description": "In seconds.", "default": 1.0, "minimum": 1e-07}}, "required": ["command"]}',
  '{"type": "object", "properties": {"items": {"type": "array", "description": "Some.", "items": {"type": "string"}}, "keys": {"type": "object", "description": "Of them.", "properties": {"10": {"type": "integer", "description": "One.", "maximum": 12345678901234567890}, "2": {"type": "string", "description": "Two."}}}}}',
  '{"type": "object", "properties": {"path": {"type": "string", "description": "Which.", "enum": ["a", "b\\n"]}, "values": {"type": "boolean", "description": "Whether."}, "get": {"type": "number", "description": "How many.", "enum": [1, 2.0, 1e5]}}, "required": []}',
];

const TOOLS: ToolSchema[] = ["execute_bash", "find_files", "edit"].map((name, at) => ({
  type: "function",
  function: {
    name,
    description: `Does ${name}; it's "quick" — naïve.`,
    parameters: keepSource(JSON.parse(PARAMETERS[at] as string), PARAMETERS[at] as string),
  },
}));

/**
 * A conversation of an agent as none is written by hand: a system message or none, one to thirty turns, several calls,
 * reasoning, results with anything in them; and what the model samples, which is what the template would show, the
 * same in other tokens, or the same said otherwise.
 */
export function drawCase(seed: number, withTools = true): VerifyCase {
  const random = randomOf(seed);
  const chance = (share: number) => random() < share;
  const text = (extra: readonly string[] = []) => {
    const words = Array.from({ length: 1 + random() * 12 }, () =>
      pick([...WORDS, ...extra], random),
    );
    return `w${Math.floor(random() * 1e9)} ${words.join(" ")} z`;
  };
  const hasTools = chance(0.85) && withTools;
  const messages: Message[] = chance(0.5) ? [{ role: "system", content: text() }] : [];
  const turns = 1 + Math.floor(random() ** 3 * 30);
  const thinks = chance(0.5);
  let calls = 0;
  messages.push({ role: "user", content: text() });
  for (let turn = 0; turn < turns; turn++) {
    const reasoning = thinks && chance(0.8) ? { reasoning_content: text() } : {};
    const count = hasTools && chance(0.75) ? 1 + Math.floor(random() ** 3 * 3) : 0;
    const ids = Array.from({ length: count }, () => `call${String(calls++).padStart(5, "0")}`);
    const content = count === 0 || chance(0.3) ? text() : "";
    const said: AssistantMessage = { role: "assistant", content, ...reasoning };
    if (count === 0) messages.push(said, { role: "user", content: text() });
    else {
      const tool_calls = ids.map((id) => callOf(id, random, text));
      messages.push({ ...said, tool_calls });
      for (const id of ids) {
        const content = chance(0.1) ? "" : text(chance(0.3) ? CONTROL : []);
        messages.push({ role: "tool", content, tool_call_id: id });
      }
    }
  }
  const variables = pick([{}, {}, { enable_thinking: true }, { enable_thinking: false }], random);
  const styles = Array.from({ length: turns }, () => pick(STYLES, random)(random));
  return { name: `seed ${seed}`, tools: hasTools ? TOOLS : [], variables, messages, styles };
}

function callOf(id: string, random: Random, text: () => string) {
  const { name } = pick(TOOLS, random).function;
  const values = [text, text, () => "", () => "line\r\n"].map(
    (make) => () => JSON.stringify(make()),
  );
  const others = [...NUMBERS, "true", "null", '["a", 1.0]', '{"2": "b", "1": [1e-07]}'];
  const entries = ["command", "items", "10", "2", "get"]
    .filter(() => random() < 0.4)
    .map((key) => `"${key}": ${random() < 0.6 ? pick(values, random)() : pick(others, random)}`);
  return {
    id,
    type: "function" as const,
    function: { name, arguments: `{${entries.join(", ")}}` },
  };
}

type Style = (random: Random) => (text: string) => string[];

const asShown: Style = () => (text) => [text];
/** Cut anywhere but inside a character or a marker, so that words fall into other tokens than usual. */
const inOtherTokens: Style = (random) => (text) => {
  const pieces = [""];
  let inMarker = false;
  for (const char of text) {
    if (!inMarker && random() < 0.1) pieces.push("");
    if (char === "<" || char === "[") inMarker = true;
    if (char === ">" || char === "]" || char === "\n") inMarker = false;
    pieces[pieces.length - 1] += char;
  }
  return pieces;
};
/** Other spaces in the JSON of calls, and in front of what ends the turn. */
const inOtherWords: Style = (random) => (text) => {
  const spaced = text.replaceAll('": ', random() < 0.5 ? '":' : '":  ');
  return [random() < 0.3 ? spaced.replace(/(<[^<>]*>|\[[^[\]]*\])?$/, "\n$1") : spaced];
};
const STYLES: readonly Style[] = [asShown, asShown, inOtherTokens, inOtherWords];
