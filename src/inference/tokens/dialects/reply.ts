import type { AssistantMessage, ToolCall, ToolSchema } from "../../engine.ts";
import { deepseek } from "./deepseek.ts";
import { type Dialect, type DialectName, type ParsedText, parsedText } from "./dialect.ts";
import { dsml } from "./dsml.ts";
import { glm } from "./glm.ts";
import { parseHarmony } from "./harmony.ts";
import { hermes } from "./hermes.ts";
import { kimi } from "./kimi.ts";
import { llama3Json } from "./llama-json.ts";
import type { MarkedText } from "./marked-text.ts";
import { mistral } from "./mistral.ts";
import { pythonic } from "./pythonic.ts";
import { openhands, qwen3Coder } from "./xml-function.ts";

const DIALECTS: Record<DialectName, Dialect> = {
  hermes,
  qwen3_coder: qwen3Coder,
  openhands,
  llama3_json: llama3Json,
  glm,
  deepseek,
  kimi,
  mistral,
  pythonic,
  dsml,
  // It is read as a whole, reasoning and all, before the others come into question.
  harmony: (source, from, tools) => parsedText(source, from, [], tools),
  none: (source, from, tools) => parsedText(source, from, [], tools),
};

const REASONING = [
  ["<think>", "</think>"],
  ["[THINK]", "[/THINK]"],
] as const;

export type Reply = ParsedText & {
  /** Null where the model did not reason; without its tags and the newlines around it. */
  reasoning: string | null;
};

type ReplyOptions = {
  dialect: DialectName;
  tools: readonly ToolSchema[];
  /** The prompt ends within reasoning, so the model writes only its end. */
  startsInReasoning: boolean;
};

/** Reasoning first: what looks like a call in it is none. */
export function parseReply(source: MarkedText, options: ReplyOptions): Reply {
  const { dialect, tools, startsInReasoning } = options;
  if (dialect === "harmony") return parseHarmony(source, tools);
  const parse = DIALECTS[dialect];
  const begin = source.skipSpace(0);
  for (const [open, close] of REASONING) {
    const opened = source.isAt(open, begin);
    const end = source.indexOf(close);
    if (!opened && end < 0) continue;
    const start = opened ? begin + open.length : 0;
    const reasoning = stripNewlines(source.text.slice(start, end < 0 ? source.length : end));
    if (end < 0) return { reasoning, content: "", calls: [] };
    const rest = parse(source, end + close.length, tools);
    return { reasoning: reasoning === "" ? null : reasoning, ...rest };
  }
  if (startsInReasoning) return { reasoning: source.text, content: "", calls: [] };
  return { reasoning: null, ...parse(source, 0, tools) };
}

/** Whether a prompt ends with reasoning that is open. */
export function startsInReasoning(promptEnd: string): boolean {
  return REASONING.some(([open, close]) => {
    return promptEnd.lastIndexOf(open) > promptEnd.lastIndexOf(close);
  });
}

/**
 * The message for the history. `callsBefore` counts the conversation's calls, for ids where the
 * model wrote none: nine letters and digits, which all templates take.
 */
export function replyMessage(
  reply: Reply,
  dialect: DialectName,
  callsBefore: number,
): AssistantMessage {
  const calls = reply.calls.map((call, index): ToolCall => {
    const n = callsBefore + index;
    const name = call.name ?? UNREADABLE;
    const made =
      dialect === "kimi" ? `functions.${name}:${n}` : `call${String(n).padStart(5, "0")}`;
    const id = call.id ?? made;
    return { id, type: "function", function: { name, arguments: call.arguments } };
  });
  return {
    role: "assistant",
    content: reply.content,
    ...(reply.reasoning === null ? {} : { reasoning_content: reply.reasoning }),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
  };
}

/** Stands for the name of a call that has none, so that its error can be answered to it. */
const UNREADABLE = "unreadable_call";

function stripNewlines(text: string): string {
  return text.replace(/^\n+/, "").replace(/\n+$/, "");
}
