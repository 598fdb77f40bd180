import { type CallStatus, type Dialect, type FoundCall } from "./dialect.ts";
import { PythonLiteral } from "./python-literal.ts";

const START = "<|python_start|>";
const END = "<|python_end|>";
const LOOKS_LIKE_CALL = /^\[\s*[A-Za-z_][\w.-]*\(/;
const HEAD = /^([A-Za-z_][\w.-]*)\(\s*/;
const KEY = /^([A-Za-z_]\w*)\s*=\s*/;

/** Llama 3.2 and 4: the whole answer is a list of calls as Python has them, `[f(a=1), g(b="x")]`. */
export const pythonic: Dialect = (source, from, tools) => {
  const begin = source.skipSpace(from);
  const tagged = source.isAt(START, begin);
  const at = source.skipSpace(tagged ? begin + START.length : begin);
  if (!tagged && !LOOKS_LIKE_CALL.test(source.text.slice(at, at + 200))) {
    return [];
  }
  const end = source.indexOf(END, at);
  const limit = end < 0 ? source.length : end;
  const found = readList(source.text.slice(0, limit), at);
  const [first] = found;
  const last = found.at(-1);
  if (first) first.start = begin;
  if (last) last.end = end < 0 ? last.end : end + END.length;
  return found;
};

function readList(text: string, start: number): FoundCall[] {
  const found: FoundCall[] = [];
  let at = text[start] === "[" ? start + 1 : start;
  for (;;) {
    at = skip(text, at);
    if (text[at] === "]") return found;
    const call = readCall(text, at);
    found.push(call);
    if (call.status !== "ok") return found;
    at = skip(text, call.end);
    if (text[at] === "]") call.end = at + 1;
    if (text[at] !== ",") {
      if (text[at] !== "]") call.status = "unclosed";
      return found;
    }
    at += 1;
    call.end = at;
  }
}

function readCall(text: string, start: number): FoundCall {
  const [head = "", name = null] = HEAD.exec(text.slice(start, start + 200)) ?? [];
  const written: Record<string, unknown> = {};
  const done = (status: CallStatus, end: number): FoundCall => {
    const raw = text.slice(start, end);
    const args = status === "ok" ? JSON.stringify(written) : raw;
    return { status, name, arguments: args, id: null, raw, start, end };
  };
  if (name === null) return done("malformed", text.length);
  const reader = new PythonLiteral(text, start + head.length);
  while (text[reader.at] !== ")") {
    if (reader.at >= text.length) return done("unclosed", text.length);
    const key = KEY.exec(text.slice(reader.at, reader.at + 200));
    if (!key) return done("malformed", text.length);
    reader.at += key[0].length;
    const value = reader.read();
    if (value === undefined) {
      return done(reader.at >= text.length ? "unclosed" : "malformed", text.length);
    }
    written[key[1] ?? ""] = value;
    reader.at = skip(text, reader.at);
    if (text[reader.at] === ",") reader.at = skip(text, reader.at + 1);
    else if (text[reader.at] !== ")" && reader.at < text.length) {
      return done("malformed", text.length);
    }
  }
  return done("ok", reader.at + 1);
}

function skip(text: string, from: number): number {
  let at = from;
  while (at < text.length && /\s/.test(text[at] as string)) at += 1;
  return at;
}
