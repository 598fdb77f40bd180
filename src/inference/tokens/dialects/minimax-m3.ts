import type { ToolSchema } from "../../engine.ts";
import { Dict, type Value } from "../jinja/values.ts";
import type { CallStatus, Dialect, FoundCall } from "./dialect.ts";
import { compactJson } from "./json-call.ts";
import type { MarkedText } from "./marked-text.ts";
import { coverSection } from "./section.ts";
import { definitionsOf, parametersOf, propertyOf, typedValue, typesOf } from "./typed-arguments.ts";

/** Stands in front of every tag. */
const MARK = "]<]minimax[>[";
const SECTION = [`${MARK}<tool_call>`, `${MARK}</tool_call>`] as const;
const OPEN = `${MARK}<invoke `;
const CLOSE = `${MARK}</invoke>`;
const HEAD = /^name="([^"]*)"\s*>/;
const TAG = /^<([^<>/\s][^<>\s]*)>/;
const MAX_DEPTH = 100;

type Schema = Record<string, unknown>;

/** MiniMax M3: arguments are tags within each other, and a list has one `<item>` for each of its own. */
export const minimaxM3: Dialect = (source, from, tools) => {
  const found: FoundCall[] = [];
  let start = source.indexOf(OPEN, from);
  while (start >= 0) {
    const call = readCall(source, start, tools);
    found.push({ ...call, start, raw: source.text.slice(start, call.end) });
    start = source.indexOf(OPEN, call.end);
  }
  return coverSection(source, from, found, SECTION);
};

function readCall(source: MarkedText, start: number, tools: readonly ToolSchema[]) {
  const body = start + OPEN.length;
  const head = HEAD.exec(source.text.slice(body, body + 300));
  const name = head?.[1]?.trim() ?? "";
  const close = source.indexOf(CLOSE, body);
  const next = source.indexOf(OPEN, body);
  const closed = close >= 0 && (next < 0 || close < next);
  const limit = closed ? close : next < 0 ? source.length : next;
  const done = (status: CallStatus, args: string) => ({
    status,
    name: name === "" ? null : name,
    arguments: args,
    id: null,
    end: closed ? limit + CLOSE.length : limit,
  });
  if (!head) return done(closed ? "malformed" : "unclosed", source.text.slice(body, limit));
  const reader = new Reader(source, body + head[0].length, limit);
  const value = reader.children(parametersOf(name, tools), 0);
  const args = value && compactJson(value);
  if (!args || reader.at < limit) {
    return done(closed ? "malformed" : "unclosed", args ?? source.text.slice(body, limit));
  }
  if (!closed) return done("unclosed", args);
  return done(name === "" ? "missing_name" : "ok", args);
}

class Reader {
  at: number;
  readonly #source: MarkedText;
  readonly #limit: number;

  constructor(source: MarkedText, at: number, limit: number) {
    this.#source = source;
    this.at = at;
    this.#limit = limit;
  }

  /** The elements up to a closing tag or the end; a name that comes again makes a list. */
  children(schema: Schema | undefined, depth: number): Dict | null {
    const dict = new Dict();
    if (depth > MAX_DEPTH) return null;
    for (let tag = this.#tag(); tag; tag = this.#tag()) {
      const own = propertyOf(schema, tag.name);
      const value = this.#element(tag, own, depth);
      if (value === undefined) return null;
      const before = dict.get(tag.name);
      if (!dict.has(tag.name)) dict.set(tag.name, value);
      else
        dict.set(tag.name, [
          ...(tag.name !== "item" && Array.isArray(before) ? before : [before]),
          value,
        ]);
    }
    return dict;
  }

  #tag(): { name: string; body: number } | null {
    const at = this.#source.skipSpace(this.at);
    if (at >= this.#limit || !this.#source.isAt(MARK, at)) return null;
    const after = at + MARK.length;
    const found = TAG.exec(this.#source.text.slice(after, after + 300));
    if (!found) return null;
    return { name: found[1] as string, body: after + found[0].length };
  }

  #element(tag: { name: string; body: number }, schema: Schema | undefined, depth: number) {
    const close = `${MARK}</${tag.name}>`;
    this.at = tag.body;
    const inner = this.#tag();
    if (inner && inner.body <= this.#limit) {
      const value = this.#nested(inner.name, schema, depth);
      this.at = this.#source.skipSpace(this.at);
      if (value === undefined || !this.#source.isAt(close, this.at)) return undefined;
      this.at += close.length;
      return value;
    }
    const end = this.#source.text.indexOf(MARK, tag.body);
    if (end < 0 || end >= this.#limit || !this.#source.text.startsWith(close, end))
      return undefined;
    const text = this.#source.text.slice(tag.body, end);
    this.at = end + close.length;
    const types = typesOf(schema);
    if (text === "" && types.has("array")) return [];
    if (text === "" && types.has("object")) return new Dict();
    return types.size === 0 ? text : typedValue(text, types);
  }

  #nested(first: string, schema: Schema | undefined, depth: number): Value | undefined {
    const types = typesOf(schema);
    const isList = types.has("array") ? true : first === "item" && !types.has("object");
    if (!isList) return this.children(schema, depth + 1) ?? undefined;
    const items: Value[] = [];
    const found = schema?.items;
    const own = typeof found === "object" && found !== null ? (found as Schema) : undefined;
    const inner = own && { ...definitionsOf(schema), ...own };
    for (let tag = this.#tag(); tag; tag = this.#tag()) {
      const item = this.#element(tag, inner, depth + 1);
      if (item === undefined || depth > MAX_DEPTH) return undefined;
      items.push(item);
    }
    return items;
  }
}
