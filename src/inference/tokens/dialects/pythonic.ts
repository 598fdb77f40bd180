import type { ToolSchema } from "../../engine.ts";
import { Dict } from "../jinja/values.ts";
import type { CallStatus, Dialect, FoundCall } from "./dialect.ts";
import { compactJson } from "./json-call.ts";
import type { MarkedText } from "./marked-text.ts";
import { PythonLiteral } from "./python-literal.ts";

const MAY_BE_CALLS = /\[\s*([A-Za-z_][\w.-]*)\(/g;
const LOOKS_LIKE_CALL = /^\[\s*[A-Za-z_][\w.-]*\(/;
const HEAD = /^([A-Za-z_][\w.-]*)\(\s*/;
const KEY = /^([A-Za-z_]\w*)\s*=\s*/;

type Frame = readonly [open: string, close: string];

/** Llama 3.2 and 4: the whole answer is a list of calls as Python has them, `[f(a=1), g(b="x")]`. */
export const pythonic = pythonicCalls(["<|python_start|>", "<|python_end|>"], true);

/** LFM2: the same within markers of its own, also behind text. */
export const lfm2 = pythonicCalls(["<|tool_call_start|>", "<|tool_call_end|>"], false);

/** OLMo 3: one call a line. */
export const olmo3 = pythonicCalls(["<function_calls>", "</function_calls>"], false);

function pythonicCalls([open, close]: Frame, isWhole: boolean): Dialect {
  return (source, from, tools) => {
    const found: FoundCall[] = [];
    let start = source.indexOf(open, from);
    if (isWhole && start < 0) {
      const begin = source.skipSpace(from);
      const isCalls = LOOKS_LIKE_CALL.test(source.text.slice(begin, begin + 200));
      if (isCalls) return readFrame(source, begin, begin, source.length);
      return callsAtEnd(source, from, tools);
    }
    while (start >= 0) {
      const end = closeOf(source, [open, close], start + open.length);
      const next = source.indexOf(open, start + open.length);
      const limit = end >= 0 ? end : next < 0 ? source.length : next;
      const calls = readFrame(source, start, source.skipSpace(start + open.length), limit);
      const last = calls.at(-1);
      if (last) {
        last.end = end < 0 ? limit : end + close.length;
        if (end < 0 && !isWhole && last.status === "ok") last.status = "unclosed";
      }
      found.push(...calls);
      start = source.indexOf(open, last?.end ?? source.length);
    }
    return found;
  };
}

/** As often calls are looked for behind text, each up to its end. */
const MAX_LOOKS = 20;

/** Behind text only what calls known tools up to the answer's end is a call. */
function callsAtEnd(source: MarkedText, from: number, tools: readonly ToolSchema[]): FoundCall[] {
  const names = new Set(tools.map((tool) => tool.function.name));
  let looks = 0;
  for (const match of source.text.slice(from).matchAll(MAY_BE_CALLS)) {
    if (!names.has(match[1] as string)) continue;
    if (++looks > MAX_LOOKS) return [];
    const start = from + match.index;
    const found = readFrame(source, start, start, source.length);
    const isLast = source.skipSpace(found.at(-1)?.end ?? 0) >= source.length;
    const isKnown = found.every(
      ({ status, name }) => status !== "malformed" && names.has(name ?? ""),
    );
    if (isLast && isKnown) return found;
  }
  return [];
}

/** The last closing marker before the next frame: an argument may quote it. */
function closeOf(source: MarkedText, [open, close]: Frame, from: number): number {
  const next = source.indexOf(open, from);
  let found = -1;
  for (let at = source.indexOf(close, from); at >= 0 && (next < 0 || at < next); ) {
    found = at;
    at = source.indexOf(close, at + close.length);
  }
  return found;
}

/** At least one call; the first begins at `start`. */
function readFrame(source: MarkedText, start: number, at: number, limit: number): FoundCall[] {
  const text = source.text.slice(0, limit);
  const found = readList(text, at);
  const [first] = found;
  if (first) {
    first.start = start;
    return found;
  }
  const raw = source.text.slice(start, limit);
  return [{ status: "malformed", name: null, arguments: raw, id: null, raw, start, end: limit }];
}

function readList(text: string, start: number): FoundCall[] {
  const found: FoundCall[] = [];
  const isList = text[start] === "[";
  let at = isList ? start + 1 : start;
  for (;;) {
    at = skip(text, at);
    if (at >= text.length || text[at] === "]") return found;
    const call = readCall(text, at);
    found.push(call);
    if (call.status !== "ok") return found;
    const behind = call.end;
    at = skip(text, call.end);
    if (text[at] === ",") at += 1;
    else if (isList) {
      if (text[at] !== "]") call.status = at >= text.length ? "unclosed" : "malformed";
      call.end = text[at] === "]" ? at + 1 : text.length;
      return found;
    } else if (at < text.length && !text.slice(behind, at).includes("\n") && text[at] !== ";") {
      call.status = "malformed";
      call.end = text.length;
      return found;
    } else if (text[at] === ";") at += 1;
    call.end = at;
  }
}

function readCall(text: string, start: number): FoundCall {
  const [head = "", name = null] = HEAD.exec(text.slice(start, start + 200)) ?? [];
  const written = new Dict();
  const done = (status: CallStatus, end: number): FoundCall => {
    const raw = text.slice(start, end);
    const json = status === "ok" ? compactJson(written) : null;
    const found = status === "ok" && json === null ? "malformed" : status;
    return { status: found, name, arguments: json ?? raw, id: null, raw, start, end };
  };
  if (name === null) return done(isNameCut(text, start) ? "unclosed" : "malformed", text.length);
  const reader = new PythonLiteral(text, start + head.length);
  while (text[reader.at] !== ")") {
    if (reader.at >= text.length) return done("unclosed", text.length);
    const key = KEY.exec(text.slice(reader.at, reader.at + 200));
    if (!key) return done("malformed", text.length);
    reader.at += key[0].length;
    const value = reader.argument();
    if (value === undefined) {
      return done(reader.at >= text.length ? "unclosed" : "malformed", text.length);
    }
    written.set(key[1] ?? "", value);
    reader.at = skip(text, reader.at);
    if (text[reader.at] === ",") reader.at = skip(text, reader.at + 1);
    else if (text[reader.at] !== ")" && reader.at < text.length) {
      return done("malformed", text.length);
    }
  }
  return done("ok", reader.at + 1);
}

function isNameCut(text: string, start: number): boolean {
  return /^[\w.-]*$/.test(text.slice(start, start + 200)) && start + 200 > text.length;
}

function skip(text: string, from: number): number {
  let at = from;
  while (at < text.length && /\s/.test(text[at] as string)) at += 1;
  return at;
}
