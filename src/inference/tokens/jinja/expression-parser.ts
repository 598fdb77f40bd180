import type { Operator } from "./arithmetic.ts";
import { narrowed } from "./arithmetic.ts";
import type { CallArguments, Comparison, Expression, Target } from "./ast.ts";
import { unescaped } from "./string-literal.ts";
import type { TokenStream } from "./token-stream.ts";
import { Float } from "./values.ts";

const NO_ARGUMENTS: CallArguments = { positional: [], named: [], spread: null, spreadNamed: null };
const COMPARISONS = ["==", "!=", "<", ">", "<=", ">="];
const CONSTANTS: Record<string, boolean | null> = {
  ...{ true: true, True: true, false: false, False: false, none: null, None: null },
};
const ENDS_OF_TUPLE = ["=", ")", ";", ":"];

/** Expressions, by the grammar of Jinja. */
export class ExpressionParser {
  readonly #tokens: TokenStream;

  constructor(tokens: TokenStream) {
    this.#tokens = tokens;
  }

  /** One expression, or a tuple of several with commas between them. */
  tuple(options: { conditions?: boolean; end?: string; explicit?: boolean } = {}): Expression {
    const { conditions = true, end, explicit = false } = options;
    const items: Expression[] = [];
    let isTuple = false;
    while (!this.#endsTuple(end)) {
      items.push(conditions ? this.expression() : this.#or());
      if (!this.#tokens.skip("operator", ",")) break;
      isTuple = true;
    }
    const [only] = items;
    if (!isTuple && only) return only;
    if (!isTuple && !explicit) return this.#tokens.fail("Expected an expression");
    return { type: "tuple", items };
  }

  #endsTuple(end: string | undefined): boolean {
    const tokens = this.#tokens;
    if (tokens.is("end") || tokens.isOperator(...ENDS_OF_TUPLE)) return true;
    return end !== undefined && tokens.isName(end);
  }

  expression(): Expression {
    let found = this.#or();
    while (this.#tokens.skip("name", "if")) {
      const test = this.#or();
      const no = this.#tokens.skip("name", "else") ? this.expression() : null;
      found = { type: "condition", test, yes: found, no };
    }
    return found;
  }

  #or(): Expression {
    let left = this.#and();
    while (this.#tokens.skip("name", "or")) left = { type: "or", left, right: this.#and() };
    return left;
  }

  #and(): Expression {
    let left = this.#not();
    while (this.#tokens.skip("name", "and")) left = { type: "and", left, right: this.#not() };
    return left;
  }

  #not(): Expression {
    if (this.#tokens.skip("name", "not")) return { type: "not", of: this.#not() };
    return this.#compare();
  }

  #compare(): Expression {
    const tokens = this.#tokens;
    const first = this.#sum();
    const rest: [Comparison, Expression][] = [];
    for (;;) {
      const { peek, following } = tokens;
      if (peek?.kind === "operator" && COMPARISONS.includes(peek.text)) {
        tokens.next();
        rest.push([peek.text as Comparison, this.#sum()]);
      } else if (tokens.skip("name", "in")) {
        rest.push(["in", this.#sum()]);
      } else if (tokens.isName("not") && following?.kind === "name" && following.text === "in") {
        tokens.next();
        tokens.next();
        rest.push(["not in", this.#sum()]);
      } else {
        return rest.length === 0 ? first : { type: "compare", first, rest };
      }
    }
  }

  #operators(operators: string[], operand: () => Expression): Expression {
    let left = operand();
    while (this.#tokens.isOperator(...operators)) {
      const { text, line } = this.#tokens.next();
      left = { type: "compute", operator: text as Operator, left, right: operand(), line };
    }
    return left;
  }

  #sum(): Expression {
    return this.#operators(["+", "-"], () => this.#concat());
  }

  #concat(): Expression {
    const parts = [this.#product()];
    while (this.#tokens.skip("operator", "~")) parts.push(this.#product());
    return parts.length === 1 ? (parts[0] as Expression) : { type: "concat", parts };
  }

  #product(): Expression {
    return this.#operators(["*", "/", "//", "%"], () => this.#power());
  }

  #power(): Expression {
    return this.#operators(["**"], () => this.unary());
  }

  /** With everything that may stand behind a value. */
  unary(filters = true): Expression {
    const tokens = this.#tokens;
    let found: Expression;
    if (tokens.skip("operator", "-")) found = { type: "negate", of: this.unary(false) };
    else if (tokens.skip("operator", "+")) found = { type: "plus", of: this.unary(false) };
    else found = this.#primary();
    found = this.#postfix(found);
    return filters ? this.filters(found) : found;
  }

  #primary(): Expression {
    const tokens = this.#tokens;
    const token = tokens.next();
    const { kind, text } = token;
    if (kind === "name") {
      if (Object.hasOwn(CONSTANTS, text)) return { type: "constant", value: CONSTANTS[text] };
      return { type: "name", name: text };
    }
    if (kind === "string") {
      let value = unescaped(text);
      while (tokens.is("string")) value += unescaped(tokens.next().text);
      return { type: "constant", value };
    }
    const digits = text.replaceAll("_", "");
    if (kind === "int") return { type: "constant", value: narrowed(BigInt(digits)) };
    if (kind === "float") return { type: "constant", value: new Float(Number(digits)) };
    if (kind === "operator" && text === "(") {
      const found = this.tuple({ explicit: true });
      tokens.expect("operator", ")");
      return found;
    }
    if (kind === "operator" && text === "[") return { type: "list", items: this.#list("]") };
    if (kind === "operator" && text === "{") return this.#dict();
    return tokens.fail(`unexpected '${text || kind}'`);
  }

  #list(end: string): Expression[] {
    const items: Expression[] = [];
    while (!this.#tokens.skip("operator", end)) {
      if (items.length > 0) this.#tokens.expect("operator", ",");
      if (this.#tokens.skip("operator", end)) break;
      items.push(this.expression());
    }
    return items;
  }

  #dict(): Expression {
    const tokens = this.#tokens;
    const entries: [Expression, Expression][] = [];
    while (!tokens.skip("operator", "}")) {
      if (entries.length > 0) tokens.expect("operator", ",");
      if (tokens.skip("operator", "}")) break;
      const key = this.expression();
      tokens.expect("operator", ":");
      entries.push([key, this.expression()]);
    }
    return { type: "dict", entries };
  }

  #postfix(given: Expression): Expression {
    const tokens = this.#tokens;
    let of = given;
    for (;;) {
      const { line } = tokens;
      if (tokens.skip("operator", ".")) of = this.#member(of);
      else if (tokens.skip("operator", "[")) of = this.#subscript(of);
      else if (tokens.isOperator("(")) of = { type: "call", of, args: this.arguments(), line };
      else return of;
    }
  }

  #member(of: Expression): Expression {
    const { kind, text } = this.#tokens.next();
    if (kind === "name") return { type: "attribute", of, name: text };
    if (kind !== "int") return this.#tokens.fail("expected name or number");
    return { type: "item", of, key: { type: "constant", value: Number(text) } };
  }

  #subscript(of: Expression): Expression {
    const tokens = this.#tokens;
    const keys: Expression[] = [];
    let found: Expression | null = null;
    while (!tokens.skip("operator", "]")) {
      if (keys.length > 0 || found) tokens.expect("operator", ",");
      const first = tokens.isOperator(":") ? null : this.expression();
      if (!tokens.isOperator(":")) {
        keys.push(first as Expression);
        continue;
      }
      const parts = [first];
      while (tokens.skip("operator", ":")) {
        parts.push(tokens.isOperator("]", ":", ",") ? null : this.expression());
      }
      found = { type: "slice", of, parts };
    }
    if (found) return keys.length === 0 ? found : tokens.fail("a tuple of slices is not supported");
    const [key] = keys;
    if (!key) return tokens.fail("expected subscript expression");
    return { type: "item", of, key: keys.length === 1 ? key : { type: "tuple", items: keys } };
  }

  /** Filters and tests behind a value, or with null those of a `filter` block. */
  filters(given: Expression): Expression {
    const tokens = this.#tokens;
    let of = given;
    for (;;) {
      const { line } = tokens;
      if (tokens.skip("operator", "|")) of = this.filter(of);
      else if (tokens.skip("name", "is")) of = this.#test(of);
      else if (tokens.isOperator("(")) of = { type: "call", of, args: this.arguments(), line };
      else return of;
    }
  }

  filter(of: Expression | null): Expression {
    const { text: name, line } = this.#tokens.expect("name");
    const args = this.#tokens.isOperator("(") ? this.arguments() : NO_ARGUMENTS;
    return { type: "filter", of, name, args, line };
  }

  #test(of: Expression): Expression {
    const tokens = this.#tokens;
    const isNegated = tokens.skip("name", "not");
    const { text: name, line } = tokens.expect("name");
    let args = NO_ARGUMENTS;
    if (tokens.isOperator("(")) args = this.arguments();
    else if (this.#beginsArgument()) {
      args = { ...NO_ARGUMENTS, positional: [this.#postfix(this.#primary())] };
    }
    const test: Expression = { type: "test", of, name, args, line };
    return isNegated ? { type: "not", of: test } : test;
  }

  #beginsArgument(): boolean {
    const tokens = this.#tokens;
    if (tokens.isName("else", "or", "and")) return false;
    if (tokens.isName("is")) return tokens.fail("You cannot chain multiple tests with is");
    const kind = tokens.peek?.kind ?? "end";
    return ["name", "string", "int", "float"].includes(kind) || tokens.isOperator("[", "{");
  }

  arguments(): CallArguments {
    const tokens = this.#tokens;
    const args: CallArguments = { positional: [], named: [], spread: null, spreadNamed: null };
    tokens.expect("operator", "(");
    let isFirst = true;
    while (!tokens.skip("operator", ")")) {
      if (!isFirst) tokens.expect("operator", ",");
      isFirst = false;
      if (tokens.skip("operator", ")")) break;
      const { following } = tokens;
      if (tokens.skip("operator", "*")) args.spread = this.expression();
      else if (tokens.skip("operator", "**")) args.spreadNamed = this.expression();
      else if (tokens.is("name") && following?.kind === "operator" && following.text === "=") {
        const { text } = tokens.next();
        tokens.next();
        args.named.push([text, this.expression()]);
      } else args.positional.push(this.expression());
    }
    return args;
  }

  /** What is assigned to; `end` is the word behind it. */
  target(end?: string): Target {
    const tokens = this.#tokens;
    const items: Target[] = [];
    let isTuple = false;
    while (!tokens.is("end") && !tokens.isOperator("=", ")", ":") && !(end && tokens.isName(end))) {
      items.push(this.#oneTarget());
      if (!tokens.skip("operator", ",")) break;
      isTuple = true;
    }
    const [only] = items;
    if (!only) return tokens.fail("expected a name to assign to");
    return isTuple ? { type: "targets", items } : only;
  }

  #oneTarget(): Target {
    const tokens = this.#tokens;
    if (tokens.skip("operator", "(")) {
      const found = this.target();
      tokens.expect("operator", ")");
      return found;
    }
    const { text } = tokens.expect("name");
    if (text in CONSTANTS) return tokens.fail(`can't assign to '${text}'`);
    if (!tokens.skip("operator", ".")) return { type: "name", name: text };
    return { type: "field", of: text, name: tokens.expect("name").text };
  }
}
