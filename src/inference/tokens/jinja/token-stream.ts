import type { Token, TokenKind } from "./lexer.ts";
import { TemplateError } from "./values.ts";

/** The tokens of a template, read one after another. */
export class TokenStream {
  readonly #tokens: Token[];
  #at = 0;

  constructor(tokens: Token[]) {
    this.#tokens = tokens;
  }

  get peek(): Token | undefined {
    return this.#tokens[this.#at];
  }

  get following(): Token | undefined {
    return this.#tokens[this.#at + 1];
  }

  get line(): number {
    return (this.peek ?? this.#tokens.at(-1))?.line ?? 1;
  }

  is(kind: TokenKind, text?: string): boolean {
    const { peek } = this;
    return peek?.kind === kind && (text === undefined || peek.text === text);
  }

  isOperator(...texts: string[]): boolean {
    return this.peek?.kind === "operator" && texts.includes(this.peek.text);
  }

  isName(...texts: string[]): boolean {
    return this.peek?.kind === "name" && texts.includes(this.peek.text);
  }

  next(): Token {
    const token = this.peek;
    if (!token) return this.fail("unexpected end of template");
    this.#at += 1;
    return token;
  }

  skip(kind: TokenKind, text?: string): boolean {
    if (!this.is(kind, text)) return false;
    this.#at += 1;
    return true;
  }

  expect(kind: TokenKind, text?: string): Token {
    if (this.is(kind, text)) return this.next();
    const found = this.peek?.text || this.peek?.kind || "end of template";
    return this.fail(`expected '${text ?? kind}', got '${found}'`);
  }

  fail(message: string): never {
    throw new TemplateError(`line ${this.line}: ${message}`);
  }
}
