import { strip, stripRight } from "./string-methods.ts";
import { TemplateError } from "./values.ts";

export type TokenKind =
  | "data"
  | "block"
  | "variable"
  | "end"
  | "name"
  | "string"
  | "int"
  | "float"
  | "operator";

/** `block` and `variable` begin a tag, `end` ends it; what is between them are the rest. */
export type Token = { kind: TokenKind; text: string; line: number };

const OPENER = /\{%[-+]?\s*raw\s*(?:-%\}\s*|%\})|\{%[-+]?|\{\{[-+]?|\{#[-+]?/g;
const RAW = /^\{%[-+]?\s*raw\s*(-?)%\}/;
const RAW_END = /(\{%[-+]?)\s*endraw\s*(?:\+%\}|-%\}\s*|%\}\n?)/g;
const COMMENT_END = /(?:\+#\}|-#\}\s*|#\}\n?)/g;
const BLOCK_END = /(?:\+%\}|-%\}\s*|%\}\n?)/y;
const VARIABLE_END = /(?:-\}\}\s*|\}\})/y;
const SPACE = /\s+/y;
const FLOAT = /\d+(?:_\d+)*(?:\.\d+(?:_\d+)*(?:e[+-]?\d+(?:_\d+)*)?|e[+-]?\d+(?:_\d+)*)/iy;
const INT = /0b(?:_?[01])+|0o(?:_?[0-7])+|0x(?:_?[\da-f])+|[1-9](?:_?\d)*|0(?:_?0)*/iy;
const NAME = /[\p{L}_][\p{L}\p{N}\p{M}_]*/uy;
const STRING = /'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"/sy;
const OPERATOR = /\/\/|\*\*|==|!=|>=|<=|[-+*/%~[\](){}><=.:|,;]/y;
const BRACKETS: Record<string, string> = { "(": ")", "[": "]", "{": "}" };

/** The tokens of a template, as Jinja cuts it with `trim_blocks` and `lstrip_blocks`. */
export function tokenize(template: string): Token[] {
  return new Lexer(template.replace(/\r\n|\r/g, "\n").replace(/\n$/, "")).tokens();
}

class Lexer {
  readonly #source: string;
  readonly #tokens: Token[] = [];
  #at = 0;
  #line = 1;
  #counted = 0;
  /** Whether what was read last ended with a line. */
  #isLineStart = true;

  constructor(source: string) {
    this.#source = source;
  }

  tokens(): Token[] {
    while (this.#at < this.#source.length) {
      OPENER.lastIndex = this.#at;
      const opener = OPENER.exec(this.#source);
      const data = this.#source.slice(this.#at, opener?.index);
      if (!opener) {
        this.#push("data", data);
        break;
      }
      const [tag] = opener;
      this.#push("data", this.#trimmed(data, tag));
      this.#at = opener.index;
      this.#lines();
      this.#skip(tag.length);
      if (RAW.test(tag)) this.#raw();
      else if (tag.startsWith("{#")) this.#comment();
      else this.#tag(tag.startsWith("{%"));
    }
    return this.#tokens;
  }

  /** What is before a tag, without the spaces that the tag takes with it. */
  #trimmed(data: string, tag: string): string {
    const sign = /^\{[%{#]([-+]?)/.exec(tag)?.[1];
    if (sign === "-") return stripRight(data);
    if (sign === "+" || tag.startsWith("{{")) return data;
    const line = data.lastIndexOf("\n") + 1;
    const rest = data.slice(line);
    const isOwnLine = line > 0 || this.#isLineStart;
    return isOwnLine && rest !== "" && strip(rest) === "" ? data.slice(0, line) : data;
  }

  #raw(): void {
    RAW_END.lastIndex = this.#at;
    const end = RAW_END.exec(this.#source);
    if (!end) this.#fail("Missing end of raw directive");
    const data = this.#source.slice(this.#at, end.index);
    this.#push("data", this.#trimmed(data, end[1] as string));
    this.#at = end.index;
    this.#skip(end[0].length);
  }

  #comment(): void {
    COMMENT_END.lastIndex = this.#at;
    const end = COMMENT_END.exec(this.#source);
    if (!end) this.#fail("Missing end of comment tag");
    this.#at = end.index;
    this.#skip(end[0].length);
  }

  #tag(isBlock: boolean): void {
    this.#push(isBlock ? "block" : "variable", "");
    const open: string[] = [];
    while (this.#at < this.#source.length) {
      if (open.length === 0 && this.#match(isBlock ? BLOCK_END : VARIABLE_END) !== null) {
        this.#tokens.push({ kind: "end", text: "", line: this.#line });
        return;
      }
      if (this.#match(SPACE) === null) this.#expression(open);
      this.#lines();
    }
    this.#fail("unexpected end of template");
  }

  #expression(open: string[]): void {
    const isItem = this.#source[this.#at - 1] === ".";
    const float = isItem ? null : this.#match(FLOAT);
    if (float !== null) {
      this.#push("float", float);
      return;
    }
    for (const [kind, pattern] of [
      ["int", INT],
      ["name", NAME],
      ["string", STRING],
    ] as const) {
      const found = this.#match(pattern);
      if (found !== null) {
        this.#push(kind, found);
        return;
      }
    }
    const operator = this.#match(OPERATOR);
    if (operator === null) this.#fail(`unexpected char ${JSON.stringify(this.#source[this.#at])}`);
    else {
      if (operator in BRACKETS) open.push(BRACKETS[operator] as string);
      else if (")]}".includes(operator) && open.pop() !== operator) {
        this.#fail(`unexpected '${operator}'`);
      }
      this.#push("operator", operator);
    }
  }

  #match(pattern: RegExp): string | null {
    pattern.lastIndex = this.#at;
    const found = pattern.exec(this.#source);
    if (found) this.#skip(found[0].length);
    return found?.[0] ?? null;
  }

  #push(kind: TokenKind, text: string): void {
    if (kind !== "data" || text !== "") this.#tokens.push({ kind, text, line: this.#line });
  }

  #skip(length: number): void {
    this.#at += length;
    this.#isLineStart = this.#source[this.#at - 1] === "\n";
  }

  /** Counts the lines up to here. */
  #lines(): void {
    for (; this.#counted < this.#at; this.#counted++) {
      if (this.#source[this.#counted] === "\n") this.#line += 1;
    }
  }

  #fail(message: string): never {
    this.#lines();
    throw new TemplateError(`line ${this.#line}: ${message}`);
  }
}
