import type { ToolSchema } from "../../engine.ts";
import { type CallStatus, type Dialect, type FoundCall } from "./dialect.ts";
import type { MarkedText } from "./marked-text.ts";
import { typedArguments } from "./typed-arguments.ts";

const FUNCTION = "<function=";
const FUNCTION_END = "</function>";
const PARAMETER = "<parameter=";
const PARAMETER_END = "</parameter>";
const OPEN = "<tool_call>";
const CLOSE = "</tool_call>";

/** OpenHands: `<function=f><parameter=p>v</parameter></function>`. */
export const openhands: Dialect = (source, from, tools) => {
  const found: FoundCall[] = [];
  let start = source.indexOf(FUNCTION, from);
  while (start >= 0) {
    const call = readFunction(source, start, tools);
    found.push({ ...call, start, raw: source.text.slice(start, call.end) });
    start = source.indexOf(FUNCTION, call.end);
  }
  return found;
};

/** Qwen3-Coder and Qwen3.5: the same within `<tool_call>`. */
export const qwen3Coder: Dialect = (source, from, tools) => {
  const found: FoundCall[] = [];
  let start = source.indexOf(OPEN, from);
  while (start >= 0) {
    const body = source.skipSpace(start + OPEN.length);
    const call = readFunction(source, body, tools);
    const close = source.skipSpace(call.end);
    const closed = source.isAt(CLOSE, close);
    if (closed) call.end = close + CLOSE.length;
    else if (call.status === "ok") call.status = "unclosed";
    found.push({ ...call, start, raw: source.text.slice(start, call.end) });
    start = source.indexOf(OPEN, call.end);
  }
  return found;
};

type Read = Omit<FoundCall, "start" | "raw">;

/** Reads on from marker to marker, so that a value may quote whatever ends a function. */
function readFunction(source: MarkedText, start: number, tools: readonly ToolSchema[]): Read {
  const { text } = source;
  const written: [string, string][] = [];
  const done = (status: CallStatus, name: string | null, end: number): Read => {
    const args = typedArguments(name ?? "", written, tools);
    return { status, name, arguments: args, id: null, end };
  };
  const nameEnd = source.isAt(FUNCTION, start) ? source.indexOf(">", start) : -1;
  if (nameEnd < 0) return done("malformed", null, endOfBroken(source, start));
  const name = text.slice(start + FUNCTION.length, nameEnd).trim();
  let at = source.skipSpace(nameEnd + 1);
  while (source.isAt(PARAMETER, at)) {
    const keyEnd = source.indexOf(">", at);
    const valueEnd = keyEnd < 0 ? -1 : source.indexOf(PARAMETER_END, keyEnd);
    if (valueEnd < 0) return done("unclosed", name, endOfBroken(source, at));
    const value = text
      .slice(keyEnd + 1, valueEnd)
      .replace(/^\n/, "")
      .replace(/\n$/, "");
    written.push([text.slice(at + PARAMETER.length, keyEnd).trim(), value]);
    at = source.skipSpace(valueEnd + PARAMETER_END.length);
  }
  const end = at + FUNCTION_END.length;
  if (!source.isAt(FUNCTION_END, at)) {
    const status = at >= source.length || source.isAt(CLOSE, at) ? "unclosed" : "malformed";
    return done(status, name, endOfBroken(source, at));
  }
  return name === "" ? done("missing_name", null, end) : done("ok", name, end);
}

/** A broken call goes as far as its closing tag, the next call, or the end. */
function endOfBroken(source: MarkedText, from: number): number {
  const ends = [
    source.indexOf(CLOSE, from),
    source.indexOf(OPEN, from),
    source.indexOf(FUNCTION, from + 1),
  ].filter((at) => at >= 0);
  return Math.min(source.length, ...ends);
}
