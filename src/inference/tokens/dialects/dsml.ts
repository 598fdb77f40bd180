import { type CallStatus, type Dialect, type FoundCall } from "./dialect.ts";
import { callOfArguments } from "./json-call.ts";
import type { MarkedText } from "./marked-text.ts";
import { coverSection } from "./section.ts";

const OPEN = "<｜DSML｜invoke";
const CLOSE = "</｜DSML｜invoke>";
const PARAMETER = "<｜DSML｜parameter";
const PARAMETER_END = "</｜DSML｜parameter>";
/** V3.2 and V4 name the section differently. */
const SECTIONS = [
  ["<｜DSML｜function_calls>", "</｜DSML｜function_calls>"],
  ["<｜DSML｜tool_calls>", "</｜DSML｜tool_calls>"],
] as const;
const NAME = /^\s+name="([^"]*)"/;
const IS_TEXT = /\sstring="true"/;

/**
 * DeepSeek from V3.2 on: `<｜DSML｜invoke name="f">` around parameters that say themselves whether they are text
 * (`string="true"`) or JSON, or around one JSON object.
 */
export const dsml: Dialect = (source, from, tools) => {
  const found: FoundCall[] = [];
  let start = source.indexOf(OPEN, from);
  while (start >= 0) {
    const next = source.indexOf(OPEN, start + 1);
    const call = readInvoke(source, start, next < 0 ? source.length : next);
    found.push({ ...call, start, raw: source.text.slice(start, call.end) });
    start = source.indexOf(OPEN, call.end);
  }
  const section = SECTIONS.find(([open]) => source.indexOf(open, from) >= 0) ?? SECTIONS[0];
  return coverSection(source, from, found, section);
};

type Read = Omit<FoundCall, "start" | "raw">;

/** Reads on from marker to marker, so that a value may quote the others. */
function readInvoke(source: MarkedText, start: number, limit: number): Read {
  const { text } = source;
  const headEnd = source.indexOf(">", start);
  const name = NAME.exec(text.slice(start + OPEN.length, headEnd))?.[1]?.trim() ?? "";
  const written: Record<string, unknown> = {};
  const done = (status: CallStatus, end: number): Read => {
    const named = status === "ok" && name === "" ? "missing_name" : status;
    const args = JSON.stringify(written);
    return { status: named, name: name === "" ? null : name, arguments: args, id: null, end };
  };
  if (headEnd < 0 || headEnd > limit) return done("malformed", limit);
  let at = source.skipSpace(headEnd + 1);
  if (text[at] === "{") {
    const close = source.indexOf(CLOSE, at);
    const json = text.slice(at, close < 0 ? limit : close).trim();
    const call = callOfArguments(name, json);
    const end = close < 0 ? limit : close + CLOSE.length;
    return { ...call, status: close < 0 ? "unclosed" : call.status, id: null, end };
  }
  let status: CallStatus = "ok";
  while (source.isAt(PARAMETER, at)) {
    const tagEnd = source.indexOf(">", at);
    const valueEnd = tagEnd < 0 ? -1 : source.indexOf(PARAMETER_END, tagEnd);
    if (valueEnd < 0) return done("unclosed", Math.max(at, limit));
    const tag = text.slice(at + PARAMETER.length, tagEnd);
    const key = NAME.exec(tag)?.[1] ?? "";
    const value = text.slice(tagEnd + 1, valueEnd);
    if (IS_TEXT.test(tag)) written[key] = value;
    else {
      try {
        written[key] = JSON.parse(value);
      } catch {
        written[key] = value;
        status = "invalid_json";
      }
    }
    at = source.skipSpace(valueEnd + PARAMETER_END.length);
  }
  if (!source.isAt(CLOSE, at)) {
    return done(at >= source.length ? "unclosed" : "malformed", Math.max(at, limit));
  }
  return done(status, at + CLOSE.length);
}
