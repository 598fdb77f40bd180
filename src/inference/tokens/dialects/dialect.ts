import type { ToolSchema } from "../../engine.ts";
import type { MarkedText } from "./marked-text.ts";

/** Everything but `ok` is the model's mistake, which it is told. */
export type CallStatus =
  | "ok"
  | "invalid_json"
  | "unclosed"
  | "missing_name"
  | "malformed"
  | "unknown_tool";

export type ParsedCall = {
  status: CallStatus;
  /** Null where none can be read. */
  name: string | null;
  /** A JSON object as text; what the model wrote where it is not one. */
  arguments: string;
  /** As the model wrote it; null in dialects without ids. */
  id: string | null;
  /** The whole call as it was written. */
  raw: string;
};

export type ParsedText = {
  /** What stands outside of the calls, without white space around it. */
  content: string;
  calls: ParsedCall[];
};

/** In the order in which a template is tried with them: what is special stands before what it contains. */
export const DIALECT_NAMES = [
  ...([
    "harmony",
    "dsml",
    "deepseek",
    "kimi",
    "kimi_k3",
    "solar",
    "gemma4",
    "functiongemma",
  ] as const),
  ...(["mistral", "minimax_m2", "minimax_m3", "muse", "minicpm", "hunyuan_v3", "glm"] as const),
  ...(["openhands", "qwen3_coder", "seed_oss", "hermes", "nemotron", "tool_calls"] as const),
  ...(["cohere", "apertus", "granite", "internlm", "gigachat", "function_call"] as const),
  ...(["lfm2", "olmo3", "functionary", "pythonic", "llama3_json"] as const),
] as const;

export type DialectName = (typeof DIALECT_NAMES)[number] | "none";

/** A call that was found, before its name is looked up. */
export type FoundCall = ParsedCall & { start: number; end: number };

/** One way to write tool calls: finds them, rising. `from` is where the reasoning ended. */
export type Dialect = (
  source: MarkedText,
  from: number,
  tools: readonly ToolSchema[],
) => FoundCall[];

/** Puts together what a dialect found. */
export function parsedText(
  source: MarkedText,
  from: number,
  found: readonly FoundCall[],
  tools: readonly ToolSchema[],
): ParsedText {
  let content = "";
  let at = from;
  for (const { start, end } of found) {
    content += source.text.slice(at, start);
    at = Math.max(at, end);
  }
  content += source.text.slice(at);
  const names = new Set(tools.map((tool) => tool.function.name));
  const calls = found.map(({ start, end, ...call }): ParsedCall => {
    const unknown = call.status === "ok" && !names.has(call.name ?? "");
    return unknown ? { ...call, status: "unknown_tool" } : call;
  });
  return { content: calls.length > 0 ? content.trim() : content.trimStart(), calls };
}
