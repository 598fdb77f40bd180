import { Dict, type Value } from "../jinja/values.ts";
import type { CallStatus, Dialect, FoundCall } from "./dialect.ts";
import { compactJson } from "./json-call.ts";
import type { MarkedText } from "./marked-text.ts";
import { jsonValue, typedValueOf } from "./typed-arguments.ts";

type Marks = { call: readonly [open: string, close: string]; quote: string };

const HEAD = /^\s*call:\s*([\w.-]*)\s*/;
const BARE = /^[^,{}[\]<\s]+/;
const KEY = /^\s*([^:{}[\],<]*?)\s*:/;
const MAX_DEPTH = 100;

/** Gemma 4: `<|tool_call>call:f{key:<|"|>text<|"|>,n:1}<tool_call|>`. */
export const gemma4 = callsIn({ call: ["<|tool_call>", "<tool_call|>"], quote: '<|"|>' });

/** FunctionGemma quotes every value, so that the schema must tell their types. */
export const functiongemma = callsIn({
  call: ["<start_function_call>", "<end_function_call>"],
  quote: "<escape>",
});

function callsIn(marks: Marks): Dialect {
  const typed = marks.quote === "<escape>";
  return (source, from, tools) => {
    const found: FoundCall[] = [];
    let start = source.indexOf(marks.call[0], from);
    while (start >= 0) {
      const body = start + marks.call[0].length;
      const [head = "", name = ""] = HEAD.exec(source.text.slice(body, body + 300)) ?? [];
      const reader = new Reader(source, body + head.length, marks);
      const value = source.text[reader.at] === "{" ? reader.read() : undefined;
      const after = source.skipSpace(reader.at);
      const closed = value !== undefined && source.isAt(marks.call[1], after);
      const end = closed ? after + marks.call[1].length : endOfBroken(source, marks, body);
      const raw = source.text.slice(start, end);
      const done = (status: CallStatus, args: string) => {
        const called = name === "" ? null : name;
        found.push({ status, name: called, arguments: args, id: null, raw, start, end });
      };
      const dict = value instanceof Dict ? value : null;
      if (dict && typed) {
        for (const [key, given] of dict.entries()) {
          if (typeof given !== "string") continue;
          dict.set(key, typedValueOf(name, String(key), given, tools));
        }
      }
      const args = dict && compactJson(dict);
      const ended = end > body && source.isAt(marks.call[1], end - marks.call[1].length);
      if (closed && args !== null) done(name === "" ? "missing_name" : "ok", args);
      else done(ended ? "malformed" : "unclosed", args ?? source.text.slice(body, end));
      start = source.indexOf(marks.call[0], end);
    }
    return found;
  };
}

function endOfBroken(source: MarkedText, { call: [open, close] }: Marks, from: number): number {
  const end = source.indexOf(close, from);
  const next = source.indexOf(open, from);
  if (end >= 0 && (next < 0 || end < next)) return end + close.length;
  return next < 0 ? source.length : next;
}

/** Objects with bare keys, lists, quoted text and bare words. */
class Reader {
  at: number;
  readonly #source: MarkedText;
  readonly #quote: string;

  constructor(source: MarkedText, at: number, { quote }: Marks) {
    this.#source = source;
    this.at = at;
    this.#quote = quote;
  }

  /** Undefined where it does not end, or is no value. */
  read(depth = 0): Value | undefined {
    const { text } = this.#source;
    this.at = this.#source.skipSpace(this.at);
    if (depth > MAX_DEPTH) return undefined;
    if (this.#source.isAt(this.#quote, this.at)) return this.#quoted();
    if (text[this.at] === "{") return this.#object(depth);
    if (text[this.at] === "[") return this.#list(depth);
    const word = this.#bare();
    if (word === null) return undefined;
    if (word === "None" || word === "null") return null;
    return jsonValue(word) ?? word;
  }

  #quoted(): string | undefined {
    const start = this.at + this.#quote.length;
    const end = this.#source.indexOf(this.#quote, start);
    if (end < 0) return undefined;
    this.at = end + this.#quote.length;
    return this.#source.text.slice(start, end);
  }

  #bare(): string | null {
    const word = BARE.exec(this.#source.text.slice(this.at, this.at + 400))?.[0] ?? null;
    if (word !== null) this.at += word.length;
    return word;
  }

  #object(depth: number): Dict | undefined {
    const dict = new Dict();
    const { text } = this.#source;
    this.at = this.#source.skipSpace(this.at + 1);
    while (text[this.at] !== "}") {
      const key = this.#key();
      if (key === undefined) return undefined;
      const value = this.read(depth + 1);
      if (value === undefined) return undefined;
      dict.set(key, value);
      if (!this.#comma("}")) return undefined;
    }
    this.at += 1;
    return dict;
  }

  #key(): string | undefined {
    if (this.#source.isAt(this.#quote, this.at)) {
      const key = this.#quoted();
      this.at = this.#source.skipSpace(this.at);
      if (this.#source.text[this.at] !== ":") return undefined;
      this.at += 1;
      return key;
    }
    const found = KEY.exec(this.#source.text.slice(this.at, this.at + 400));
    if (!found) return undefined;
    this.at += found[0].length;
    return found[1];
  }

  #list(depth: number): Value[] | undefined {
    const items: Value[] = [];
    const { text } = this.#source;
    this.at = this.#source.skipSpace(this.at + 1);
    while (text[this.at] !== "]") {
      const item = this.read(depth + 1);
      if (item === undefined) return undefined;
      items.push(item);
      if (!this.#comma("]")) return undefined;
    }
    this.at += 1;
    return items;
  }

  /** A comma, or the end. */
  #comma(end: string): boolean {
    this.at = this.#source.skipSpace(this.at);
    const char = this.#source.text[this.at];
    if (char === ",") this.at = this.#source.skipSpace(this.at + 1);
    return char === "," || char === end;
  }
}
