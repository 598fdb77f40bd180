import { Dict, Float, type Value } from "./values.ts";

const NUMBER = /-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/y;
const SPACE = /[ \t\n\r]*/y;
/** Control characters in a string are left to `JSON.parse`, which refuses them as Python does. */
const PLAIN_STRING = /"([^"\\\p{Cc}]*)"/uy;
const STRING = /"(?:[^"\\]|\\.)*"/suy;
const WORDS: Record<string, Value> = {
  ...{ null: null, true: true, false: false },
  ...{
    NaN: new Float(Number.NaN),
    Infinity: new Float(Infinity),
    "-Infinity": new Float(-Infinity),
  },
};
const WORD = /null|true|false|NaN|-?Infinity/y;
const MAX_DEPTH = 500;

/**
 * `json.loads(text)`: what a template gets of arguments and tools. `JSON.parse` would change 1.0, ints
 * beyond 2^53 and the order of keys such as "2".
 *
 * @throws SyntaxError
 */
export function loads(text: string): Value {
  return new Reader(text).whole();
}

class Reader {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
  }

  whole(): Value {
    const value = this.#value(0);
    this.#match(SPACE);
    if (this.#at < this.#text.length) this.#fail();
    return value;
  }

  #value(depth: number): Value {
    this.#match(SPACE);
    const char = this.#text[this.#at];
    if (depth > MAX_DEPTH) throw new SyntaxError("JSON is nested too deeply");
    if (char === '"') return this.#string();
    if (char === "{") return this.#object(depth);
    if (char === "[") return this.#array(depth);
    const word = this.#match(WORD);
    if (word) return WORDS[word[0]];
    const number = this.#match(NUMBER);
    if (!number) return this.#fail();
    const [shown, fraction, exponent] = number;
    if (fraction !== undefined || exponent !== undefined) return new Float(Number(shown));
    const int = Number(shown);
    if (!Number.isSafeInteger(int)) return BigInt(shown);
    return int === 0 ? 0 : int;
  }

  #string(): string {
    const plain = this.#match(PLAIN_STRING);
    if (plain) return plain[1] as string;
    const quoted = this.#match(STRING);
    return quoted ? (JSON.parse(quoted[0]) as string) : this.#fail();
  }

  #array(depth: number): Value[] {
    const items: Value[] = [];
    this.#at += 1;
    if (this.#skip("]")) return items;
    for (;;) {
      items.push(this.#value(depth + 1));
      if (this.#skip("]")) return items;
      if (!this.#skip(",")) this.#fail();
    }
  }

  #object(depth: number): Dict {
    const dict = new Dict();
    this.#at += 1;
    if (this.#skip("}")) return dict;
    for (;;) {
      this.#match(SPACE);
      const key = this.#string();
      if (!this.#skip(":")) this.#fail();
      dict.set(key, this.#value(depth + 1));
      if (this.#skip("}")) return dict;
      if (!this.#skip(",")) this.#fail();
    }
  }

  #skip(char: string): boolean {
    this.#match(SPACE);
    if (this.#text[this.#at] !== char) return false;
    this.#at += 1;
    return true;
  }

  #match(pattern: RegExp): RegExpExecArray | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#text);
    if (found) this.#at = pattern.lastIndex;
    return found;
  }

  #fail(): never {
    const near = JSON.stringify(this.#text.slice(this.#at, this.#at + 20));
    throw new SyntaxError(`no JSON at ${this.#at}: ${near}`);
  }
}
