import { loads } from "../jinja/json-value.ts";
import { Dict, type Value } from "../jinja/values.ts";

const NUMBER = /^[+-]?(\d[\d_]*\.?\d*|\.\d+)([eE][+-]?\d+)?/;
const WORDS: [string, Value][] = [
  ["True", true],
  ["False", false],
  ["None", null],
  ["true", true],
  ["false", false],
  ["null", null],
];
const ESCAPES: Record<string, string> = { n: "\n", t: "\t", r: "\r", "\n": "", b: "\b", f: "\f" };
const MAX_DEPTH = 50;
/** What follows an argument: the next one, or the end of the call and what may follow that. */
const ARGUMENT_END = /\s*(?:$|,\s*(?:[A-Za-z_]\w*\s*=|\))|\)\s*(?:$|[,;\])]|\n|[A-Za-z_]))/y;

/** As Python reads it; what JSON writes otherwise, such as 1. and .5, as JSON has it. */
function numberOf(text: string): Value {
  const plain = text
    .replace(/^\+/, "")
    .replace(/^(-?)\./, "$10.")
    .replace(/\.(?!\d)/, ".0");
  try {
    return loads(plain);
  } catch {
    return loads(plain.replace(/^(-?)0+(?=\d)/, "$1"));
  }
}

/** Reads Python's literals of what JSON can hold, one after another. */
export class PythonLiteral {
  at: number;
  readonly #text: string;

  constructor(text: string, at: number) {
    this.#text = text;
    this.at = at;
  }

  /** What stands at `at`, which moves behind it; undefined where that is no literal, or has no end. */
  read(depth = 0): Value | undefined {
    this.#skip();
    const text = this.#text;
    const char = text[this.at] ?? "";
    if (depth > MAX_DEPTH || char === "") return undefined;
    if (char === '"' || char === "'") return this.#string(char);
    if (char === "[" || char === "(") return this.#list(char === "[" ? "]" : ")", depth);
    if (char === "{") return this.#dict(depth);
    for (const [word, value] of WORDS) {
      if (!text.startsWith(word, this.at)) continue;
      this.at += word.length;
      return value;
    }
    const number = NUMBER.exec(text.slice(this.at, this.at + 400))?.[0];
    if (number === undefined) return undefined;
    this.at += number.length;
    return numberOf(number.replaceAll("_", ""));
  }

  /**
   * The same for an argument of a call. Templates write text between quotes as it is, and so do models: where
   * no argument can end behind a quote, it is part of the text.
   */
  argument(): Value | undefined {
    this.#skip();
    const start = this.at;
    const quote = this.#text[start];
    const value = this.read();
    if (quote !== '"' && quote !== "'") return value;
    ARGUMENT_END.lastIndex = this.at;
    if (value !== undefined && ARGUMENT_END.test(this.#text)) return value;
    this.at = start + 1;
    let text = "";
    while (this.at < this.#text.length) {
      const char = this.#text[this.at] as string;
      ARGUMENT_END.lastIndex = this.at + 1;
      if (char === quote && ARGUMENT_END.test(this.#text)) {
        this.at += 1;
        return text;
      }
      if (char === "\\") text += this.#escape();
      else {
        text += char;
        this.at += 1;
      }
    }
    return undefined;
  }

  #string(quote: string): string | undefined {
    const text = this.#text;
    const triple = text.startsWith(quote.repeat(3), this.at);
    const end = triple ? quote.repeat(3) : quote;
    this.at += end.length;
    let value = "";
    while (this.at < text.length) {
      if (text.startsWith(end, this.at)) {
        this.at += end.length;
        return value;
      }
      if (text[this.at] === "\\") value += this.#escape();
      else value += text[this.at++];
    }
    return undefined;
  }

  #escape(): string {
    const rest = this.#text.slice(this.at + 1, this.at + 10);
    const hex = /^(?:x([\da-fA-F]{2})|u([\da-fA-F]{4})|U00([\da-fA-F]{6}))/.exec(rest);
    const code = hex?.[1] ?? hex?.[2] ?? hex?.[3];
    if (hex && code !== undefined && Number.parseInt(code, 16) <= 0x10ffff) {
      this.at += 1 + hex[0].length;
      return String.fromCodePoint(Number.parseInt(code, 16));
    }
    const char = rest[0] ?? "";
    this.at += 1 + char.length;
    return ESCAPES[char] ?? (/[\\'"]/.test(char) ? char : `\\${char}`);
  }

  #list(end: string, depth: number): Value[] | undefined {
    this.at += 1;
    const items: Value[] = [];
    for (;;) {
      this.#skip();
      if (this.#text[this.at] === end) break;
      const item = this.read(depth + 1);
      if (item === undefined) return undefined;
      items.push(item);
      if (!this.#comma(end)) return undefined;
    }
    this.at += 1;
    return items;
  }

  #dict(depth: number): Dict | undefined {
    this.at += 1;
    const dict = new Dict();
    for (;;) {
      this.#skip();
      if (this.#text[this.at] === "}") break;
      const key = this.read(depth + 1);
      this.#skip();
      if (typeof key !== "string" || this.#text[this.at] !== ":") return undefined;
      this.at += 1;
      const value = this.read(depth + 1);
      if (value === undefined) return undefined;
      dict.set(key, value);
      if (!this.#comma("}")) return undefined;
    }
    this.at += 1;
    return dict;
  }

  /** A comma, or the end. */
  #comma(end: string): boolean {
    this.#skip();
    const char = this.#text[this.at];
    if (char === ",") this.at += 1;
    return char === "," || char === end;
  }

  #skip(): void {
    while (/\s/.test(this.#text[this.at] ?? "")) this.at += 1;
  }
}
