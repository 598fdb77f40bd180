import type { AssistantMessage, ToolCall, ToolSchema } from "../../engine.ts";
import { deepseek } from "./deepseek.ts";
import { type Dialect, type DialectName, type ParsedText, parsedText } from "./dialect.ts";
import { functionary } from "./functionary.ts";
import { functiongemma, gemma4 } from "./gemma.ts";
import { glm, hunyuanV3 } from "./glm.ts";
import { parseHarmony } from "./harmony.ts";
import { hermes } from "./hermes.ts";
import {
  apertus,
  cohere,
  functionCall,
  gigachat,
  granite,
  internlm,
  nemotron,
  toolCalls,
} from "./json-families.ts";
import { kimi } from "./kimi.ts";
import { llama3Json } from "./llama-json.ts";
import type { MarkedText } from "./marked-text.ts";
import { minimaxM3 } from "./minimax-m3.ts";
import { mistral } from "./mistral.ts";
import { lfm2, olmo3, pythonic } from "./pythonic.ts";
import { solar } from "./solar.ts";
import { dsml, kimiK3, minicpm, minimaxM2, muse } from "./tag-families.ts";
import { unreadCall } from "./unread.ts";
import { openhands, qwen3Coder, seedOss } from "./xml-function.ts";

const DIALECTS: Record<DialectName, Dialect> = {
  hermes,
  nemotron,
  tool_calls: toolCalls,
  cohere,
  apertus,
  granite,
  internlm,
  gigachat,
  function_call: functionCall,
  qwen3_coder: qwen3Coder,
  seed_oss: seedOss,
  openhands,
  llama3_json: llama3Json,
  glm,
  hunyuan_v3: hunyuanV3,
  deepseek,
  kimi,
  kimi_k3: kimiK3,
  solar,
  gemma4,
  functiongemma,
  minimax_m2: minimaxM2,
  minimax_m3: minimaxM3,
  muse,
  minicpm,
  functionary,
  mistral,
  pythonic,
  lfm2,
  olmo3,
  dsml,
  // It is read as a whole, reasoning and all, before the others come into question.
  harmony: () => [],
  none: () => [],
};

const REASONING = [
  ["<think>", "</think>"],
  ["[THINK]", "[/THINK]"],
  ["<mm:think>", "</mm:think>"],
  ["<seed:think>", "</seed:think>"],
  ["<|open|>think<|sep|>", "<|close|>think<|sep|>"],
  ["<|START_THINKING|>", "<|END_THINKING|>"],
  ["<|inner_prefix|>", "<|inner_suffix|>"],
  ["<|channel>thought", "<channel|>"],
] as const;

export type Reply = ParsedText & {
  /** Null where the model did not reason; without its tags and the newlines around it. */
  reasoning: string | null;
};

export type ReplyOptions = {
  dialect: DialectName;
  tools: readonly ToolSchema[];
  /** The prompt ends within reasoning, so the model writes only its end. */
  startsInReasoning: boolean;
  /** What the template opens calls with, as text; more than the dialect knows of. */
  markers?: readonly string[];
};

/** Reasoning first: what looks like a call in it is none, unless the reasoning has no end. */
export function parseReply(source: MarkedText, options: ReplyOptions): Reply {
  const { dialect, tools, startsInReasoning } = options;
  if (dialect === "harmony") return parseHarmony(source, tools);
  const begin = source.skipSpace(0);
  for (const [open, close] of REASONING) {
    const opened = source.isAt(open, begin);
    const end = source.indexOf(close);
    if (!opened && end < 0) continue;
    const start = opened ? begin + open.length : 0;
    if (end < 0) return endlessReasoning(source, start, options);
    const reasoning = stripNewlines(source.text.slice(start, end));
    const rest = readText(source, end + close.length, options);
    return { reasoning: reasoning === "" ? null : reasoning, ...rest };
  }
  if (startsInReasoning) return endlessReasoning(source, 0, options);
  return { reasoning: null, ...readText(source, 0, options) };
}

function readText(source: MarkedText, from: number, options: ReplyOptions): ParsedText {
  const { dialect, tools, markers = [] } = options;
  const found = DIALECTS[dialect](source, from, tools);
  const unread = tools.length > 0 ? unreadCall(source, from, found, markers) : null;
  const calls = unread ? [...found, unread].toSorted((a, b) => a.start - b.start) : found;
  return parsedText(source, from, calls, tools);
}

/** A call in reasoning that never ends is not carried out, and the model is told. */
function endlessReasoning(source: MarkedText, start: number, options: ReplyOptions): Reply {
  const { tools, markers = [] } = options;
  const unread = tools.length > 0 ? unreadCall(source, start, [], markers) : null;
  const end = unread?.start ?? source.length;
  const reasoning = source.text.slice(start, end);
  const stripped = start > 0 ? stripNewlines(reasoning) : reasoning;
  return {
    reasoning: stripped,
    content: "",
    calls: unread ? parsedText(source, unread.start, [unread], tools).calls : [],
  };
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
