import type { ToolSchema } from "../../engine.ts";
import { type CallStatus, type Dialect, type FoundCall } from "./dialect.ts";
import type { MarkedText } from "./marked-text.ts";
import { typedArguments } from "./typed-arguments.ts";

const OPEN = "<tool_call>";
const CLOSE = "</tool_call>";
const KEY = ["<arg_key>", "</arg_key>"] as const;
const VALUE = ["<arg_value>", "</arg_value>"] as const;

/** GLM-4.5 and later: `<tool_call>f <arg_key>k</arg_key><arg_value>v</arg_value></tool_call>`. */
export const glm: Dialect = (source, from, tools) => {
  const found: FoundCall[] = [];
  let start = source.indexOf(OPEN, from);
  while (start >= 0) {
    const call = read(source, start, tools);
    found.push({ ...call, start, raw: source.text.slice(start, call.end) });
    start = source.indexOf(OPEN, call.end);
  }
  return found;
};

function read(source: MarkedText, start: number, tools: readonly ToolSchema[]) {
  const body = start + OPEN.length;
  const nameEnd = [source.indexOf(KEY[0], body), source.indexOf(CLOSE, body)].filter(
    (at) => at >= 0,
  );
  let at = Math.min(source.length, ...nameEnd);
  const name = source.text.slice(body, at).trim();
  const written: [string, string][] = [];
  const done = (status: CallStatus, end: number) => {
    const args = typedArguments(name, written, tools);
    return { status, name: name === "" ? null : name, arguments: args, id: null, end };
  };
  while (source.isAt(KEY[0], at)) {
    const keyEnd = source.indexOf(KEY[1], at);
    const value = keyEnd < 0 ? -1 : source.skipSpace(keyEnd + KEY[1].length);
    if (value < 0 || value >= source.length) return done("unclosed", source.length);
    if (!source.isAt(VALUE[0], value)) return done("malformed", endOfBroken(source, value));
    const valueEnd = source.indexOf(VALUE[1], value);
    if (valueEnd < 0) return done("unclosed", source.length);
    const key = source.text.slice(at + KEY[0].length, keyEnd).trim();
    written.push([key, source.text.slice(value + VALUE[0].length, valueEnd)]);
    at = source.skipSpace(valueEnd + VALUE[1].length);
  }
  if (at >= source.length) return done("unclosed", source.length);
  if (!source.isAt(CLOSE, at)) return done("malformed", endOfBroken(source, at));
  return done(name === "" ? "missing_name" : "ok", at + CLOSE.length);
}

function endOfBroken(source: MarkedText, from: number): number {
  const close = source.indexOf(CLOSE, from);
  return close < 0 ? source.length : close + CLOSE.length;
}
