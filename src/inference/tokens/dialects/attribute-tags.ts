import type { ToolSchema } from "../../engine.ts";
import { Dict, type Value } from "../jinja/values.ts";
import type { CallStatus, Dialect, FoundCall } from "./dialect.ts";
import { callOfArguments, compactJson } from "./json-call.ts";
import type { MarkedText } from "./marked-text.ts";
import { coverSection } from "./section.ts";
import { jsonValue, typedValueOf } from "./typed-arguments.ts";

export type TagSpec = {
  /** What a call's head begins with, up to its attributes, and what ends a call. */
  call: readonly [open: string, close: string];
  parameter: readonly [open: string, close: string];
  /** What ends a head. */
  headEnd: string;
  /** The attribute that names the function. */
  name: string;
  /** The attribute that names a parameter. */
  key: string;
  /** What may stand around all calls. */
  sections: readonly (readonly [open: string, close: string])[];
  /** Whether a parameter's head says that its value is text, or JSON; null where only the schema knows. */
  isText(head: string): boolean | null;
};

/** Calls whose heads have attributes: `<invoke name="f"><parameter name="p">v</parameter></invoke>`. */
export function attributeTags(spec: TagSpec): Dialect {
  return (source, from, tools) => {
    const found: FoundCall[] = [];
    let start = source.indexOf(spec.call[0], from);
    while (start >= 0) {
      const next = source.indexOf(spec.call[0], start + 1);
      const call = readCall(spec, source, start, next < 0 ? source.length : next, tools);
      found.push({ ...call, start, raw: source.text.slice(start, call.end) });
      start = source.indexOf(spec.call[0], call.end);
    }
    const section = spec.sections.find(([open]) => source.indexOf(open, from) >= 0);
    return section ? coverSection(source, from, found, section) : found;
  };
}

type Read = Omit<FoundCall, "start" | "raw">;

/** Reads on from marker to marker, so that a value may quote the others. */
function readCall(
  spec: TagSpec,
  source: MarkedText,
  start: number,
  limit: number,
  tools: readonly ToolSchema[],
): Read {
  const { text } = source;
  const headEnd = source.indexOf(spec.headEnd, start);
  const head = text.slice(start + spec.call[0].length, headEnd);
  const name = headEnd < 0 ? "" : (attribute(head, spec.name)?.trim() ?? "");
  const written = new Dict();
  const done = (status: CallStatus, end: number): Read => {
    const named = status === "ok" && name === "" ? "missing_name" : status;
    const json = compactJson(written);
    const args = json ?? text.slice(start, end);
    const found = json === null && named === "ok" ? "invalid_json" : named;
    return { status: found, name: name === "" ? null : name, arguments: args, id: null, end };
  };
  const [open, close] = spec.call;
  if (headEnd < 0 || headEnd > limit) {
    return done(headEnd < 0 && limit >= source.length ? "unclosed" : "malformed", limit);
  }
  let at = source.skipSpace(headEnd + spec.headEnd.length);
  if (text[at] === "{") {
    const end = source.indexOf(close, at);
    const json = text.slice(at, end < 0 ? limit : end).trim();
    const call = callOfArguments(name, json);
    const status = end < 0 ? "unclosed" : call.status;
    return { ...call, status, id: null, end: end < 0 ? limit : end + close.length };
  }
  let status: CallStatus = "ok";
  while (source.isAt(spec.parameter[0], at)) {
    const tagEnd = source.indexOf(spec.headEnd, at);
    const valueEnd = tagEnd < 0 ? -1 : endOfValue(spec, source, tagEnd + spec.headEnd.length);
    if (valueEnd < 0) return done("unclosed", Math.max(at, limit));
    const tag = text.slice(at + spec.parameter[0].length, tagEnd);
    const key = attribute(tag, spec.key);
    const value = withoutCdata(text.slice(tagEnd + spec.headEnd.length, valueEnd));
    if (key === null) status = "malformed";
    else {
      const isText = spec.isText(tag);
      const typed = isText === false ? jsonValue(value) : undefined;
      if (isText === false && typed === undefined) status = "invalid_json";
      const plain: Value = isText === null ? typedValueOf(name, key, value, tools) : value;
      written.set(key, typed === undefined ? plain : typed);
    }
    at = source.skipSpace(valueEnd + spec.parameter[1].length);
  }
  if (source.isAt(close, at)) return done(status, at + close.length);
  const cut = at >= source.length || source.isAt(open, at);
  return done(cut ? "unclosed" : "malformed", Math.max(at, limit));
}

const CDATA = ["<![CDATA[", "]]>"] as const;

/** Where a value's closing tag is; what stands in a CDATA section is none. */
function endOfValue(spec: TagSpec, source: MarkedText, from: number): number {
  const quoted = source.text.startsWith(CDATA[0], from) ? source.text.indexOf(CDATA[1], from) : -1;
  return source.indexOf(spec.parameter[1], Math.max(from, quoted));
}

function withoutCdata(value: string): string {
  const isQuoted = value.startsWith(CDATA[0]) && value.endsWith(CDATA[1]);
  return isQuoted ? value.slice(CDATA[0].length, -CDATA[1].length) : value;
}

/** An attribute's value. */
function attribute(head: string, name: string): string | null {
  const found = new RegExp(`(?:^|\\s)${name}\\s*=\\s*(?:"([^"]*)"|'([^']*)'|([^\\s"'>]+))`).exec(
    head,
  );
  return found ? (found[1] ?? found[2] ?? found[3] ?? null) : null;
}
