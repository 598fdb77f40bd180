import type { ToolSchema } from "../../engine.ts";
import type { CallStatus, Dialect, FoundCall } from "./dialect.ts";
import { callOfArguments, endOfJson } from "./json-call.ts";
import type { MarkedText } from "./marked-text.ts";
import { parametersOf, typedArguments } from "./typed-arguments.ts";

const FUNCTION = "<function=";
const FUNCTION_END = "</function>";
const PARAMETER = "<parameter=";
const PARAMETER_END = "</parameter>";

type Wrapper = readonly [open: string, close: string];

/** `<function=f><parameter=p>v</parameter></function>`, within a wrapper where the family has one. */
function xmlFunctions(wrapper: Wrapper | null): Dialect {
  return (source, from, tools) => {
    const found: FoundCall[] = [];
    let start = nextCall(source, wrapper, from);
    while (start >= 0) {
      const call = readWrapped(source, wrapper, start, tools);
      found.push({ ...call, start, raw: source.text.slice(start, call.end) });
      start = nextCall(source, wrapper, call.end);
    }
    return found;
  };
}

/** OpenHands: without a wrapper. */
export const openhands = xmlFunctions(null);

/** Qwen3-Coder, Qwen3.5 and Nemotron 3, whose models forget the opening one at times. */
export const qwen3Coder = xmlFunctions(["<tool_call>", "</tool_call>"]);

/** Seed-OSS. */
export const seedOss = xmlFunctions(["<seed:tool_call>", "</seed:tool_call>"]);

function nextCall(source: MarkedText, wrapper: Wrapper | null, from: number): number {
  const starts = [FUNCTION, ...(wrapper ? [wrapper[0]] : [])].map((open) => {
    return source.indexOf(open, from);
  });
  return starts.filter((at) => at >= 0).reduce((a, b) => (a < 0 ? b : Math.min(a, b)), -1);
}

type Read = Omit<FoundCall, "start" | "raw">;

function readWrapped(
  source: MarkedText,
  wrapper: Wrapper | null,
  start: number,
  tools: readonly ToolSchema[],
): Read {
  if (!wrapper) return readFunction(source, null, start, tools);
  const [open, close] = wrapper;
  const isOpened = source.isAt(open, start);
  const body = isOpened ? source.skipSpace(start + open.length) : start;
  const call = readFunction(source, wrapper, body, tools);
  const after = source.skipSpace(call.end);
  if (source.isAt(close, after)) return { ...call, end: after + close.length };
  // Several functions may share a wrapper; one that was never opened needs no end.
  const isWhole = !isOpened || source.isAt(FUNCTION, after);
  return call.status === "ok" && !isWhole ? { ...call, status: "unclosed" } : call;
}

/** Reads on from marker to marker, so that a value may quote whatever ends a function. */
function readFunction(
  source: MarkedText,
  wrapper: Wrapper | null,
  start: number,
  tools: readonly ToolSchema[],
): Read {
  const { text } = source;
  const written: [string, string][] = [];
  const done = (status: CallStatus, name: string | null, end: number): Read => {
    const args = typedArguments(name ?? "", written, tools);
    return { status, name, arguments: args, id: null, end };
  };
  const nameEnd = source.isAt(FUNCTION, start) ? source.indexOf(">", start) : -1;
  if (nameEnd < 0) {
    const end = endOfBroken(source, wrapper, start);
    const isCut =
      end >= source.length && FUNCTION.startsWith(text.slice(start, start + FUNCTION.length));
    return done(isCut ? "unclosed" : "malformed", null, end);
  }
  const name = text.slice(start + FUNCTION.length, nameEnd).trim();
  const known = new Set(Object.keys(parametersOf(name, tools)?.properties ?? {}));
  const isOpen = (key: string) => known.has(key) && !written.some(([given]) => given === key);
  let at = source.skipSpace(nameEnd + 1);
  if (text[at] === "{") return readJson(source, wrapper, name, at);
  while (source.isAt(PARAMETER, at)) {
    const keyEnd = source.indexOf(">", at);
    const closed = keyEnd < 0 ? -1 : source.indexOf(PARAMETER_END, keyEnd);
    const forgotten = keyEnd < 0 ? -1 : nextKnown(source, keyEnd, closed, isOpen);
    const valueEnd = forgotten < 0 ? closed : forgotten;
    if (valueEnd < 0) return done("unclosed", name, endOfBroken(source, wrapper, at));
    const value = text
      .slice(keyEnd + 1, valueEnd)
      .replace(/^\n/, "")
      .replace(/\n$/, "");
    written.push([text.slice(at + PARAMETER.length, keyEnd).trim(), value]);
    at = source.skipSpace(valueEnd + (forgotten < 0 ? PARAMETER_END.length : 0));
  }
  const end = at + FUNCTION_END.length;
  if (!source.isAt(FUNCTION_END, at)) {
    const isClosed = wrapper !== null && source.isAt(wrapper[1], at);
    const status = at >= source.length || isClosed ? "unclosed" : "malformed";
    return done(status, name, endOfBroken(source, wrapper, at));
  }
  return name === "" ? done("missing_name", null, end) : done("ok", name, end);
}

/**
 * Models forget a value's closing tag at times: where the tool's next parameter begins on a line of its own before any
 * closing tag, the value ends there. -1 where it does not.
 */
function nextKnown(
  source: MarkedText,
  from: number,
  closed: number,
  isOpen: (key: string) => boolean,
): number {
  const at = source.indexOf(`\n${PARAMETER}`, from + 1);
  if (at < 0 || closed < 0 || at > closed) return -1;
  const start = at + 1 + PARAMETER.length;
  const key = /^([^<>\n]{1,200})>/.exec(source.text.slice(start, start + 201))?.[1]?.trim();
  return key !== undefined && isOpen(key) ? at + 1 : -1;
}

/** Functionary writes the arguments as one JSON object. */
function readJson(source: MarkedText, wrapper: Wrapper | null, name: string, at: number): Read {
  const json = endOfJson(source.text, at);
  const close = json < 0 ? -1 : source.skipSpace(json);
  const closed = close >= 0 && source.isAt(FUNCTION_END, close);
  const end = closed ? close + FUNCTION_END.length : endOfBroken(source, wrapper, at);
  const call = callOfArguments(name, source.text.slice(at, json < 0 ? end : json).trim());
  const status = closed
    ? call.status
    : json < 0 || close >= source.length
      ? "unclosed"
      : "malformed";
  return { ...call, status, id: null, end };
}

/** A broken call goes as far as its closing tag, the next call, or the end. */
function endOfBroken(source: MarkedText, wrapper: Wrapper | null, from: number): number {
  const ends = [
    ...(wrapper ?? []).map((tag) => source.indexOf(tag, from + 1)),
    source.indexOf(FUNCTION, from + 1),
  ];
  return Math.min(source.length, ...ends.filter((at) => at >= 0));
}
