import type { Expression, Parameters, Statement, Target } from "./ast.ts";
import { ExpressionParser } from "./expression-parser.ts";
import { tokenize } from "./lexer.ts";
import { TokenStream } from "./token-stream.ts";

/** @throws TemplateError that names the line */
export function parseTemplate(text: string): Statement[] {
  return new StatementParser(new TokenStream(tokenize(text))).body();
}

class StatementParser {
  readonly #tokens: TokenStream;
  readonly #expressions: ExpressionParser;
  #loops = 0;

  constructor(tokens: TokenStream) {
    this.#tokens = tokens;
    this.#expressions = new ExpressionParser(tokens);
  }

  /** Up to a tag of one of these names, which is not read; without names to the end. */
  body(...ends: string[]): Statement[] {
    const tokens = this.#tokens;
    const statements: Statement[] = [];
    for (;;) {
      const { peek, line } = tokens;
      if (!peek) {
        if (ends.length > 0) tokens.fail(`the template ends without ${ends.join(" or ")}`);
        return statements;
      }
      if (peek.kind === "data") {
        statements.push({ type: "data", text: tokens.next().text, line });
      } else if (tokens.skip("variable")) {
        statements.push({ type: "output", of: this.#expressions.tuple(), line });
        tokens.expect("end");
      } else {
        const name = tokens.following?.text ?? "";
        if (ends.includes(name)) return statements;
        tokens.expect("block");
        statements.push(this.#statement(tokens.expect("name").text, line));
      }
    }
  }

  /** The end of an opening tag, the body and the whole closing tag. */
  #block(end: string): Statement[] {
    this.#tokens.expect("end");
    const body = this.body(end);
    this.#close();
    return body;
  }

  /** Reads `{% NAME` of a tag that a body ended with. */
  #branch(): string {
    this.#tokens.expect("block");
    return this.#tokens.next().text;
  }

  #close(): void {
    this.#branch();
    if (!this.#tokens.is("end")) this.#tokens.next();
    this.#tokens.expect("end");
  }

  #statement(name: string, line: number): Statement {
    const tokens = this.#tokens;
    const simple = (found: Statement) => {
      tokens.expect("end");
      return found;
    };
    if (name === "if") return { type: "if", branches: this.#branches(), line };
    if (name === "for") return this.#for(line);
    if (name === "set") return this.#set(line);
    if (name === "macro") {
      const macro = tokens.expect("name").text;
      const parameters = this.#parameters();
      return { type: "macro", name: macro, parameters, body: this.#unlooped("endmacro"), line };
    }
    if (name === "call") {
      const parameters = tokens.isOperator("(") ? this.#parameters() : { names: [], defaults: [] };
      const call = this.#expressions.expression();
      if (call.type !== "call") return tokens.fail("expected call");
      return { type: "call block", call, parameters, body: this.#unlooped("endcall"), line };
    }
    if (name === "filter") {
      const filter = this.#expressions.filters(this.#expressions.filter(null));
      return { type: "filter block", filter, body: this.#block("endfilter"), line };
    }
    if (name === "with") return this.#with(line);
    if (name === "generation") {
      return { type: "scope", body: this.#unlooped("endgeneration"), line };
    }
    if (name === "break" || name === "continue") {
      if (this.#loops === 0) tokens.fail(`'${name}' outside loop`);
      return simple({ type: name, line });
    }
    return tokens.fail(`the tag {% ${name} %} is not supported`);
  }

  #unlooped(end: string): Statement[] {
    const loops = this.#loops;
    this.#loops = 0;
    const body = this.#block(end);
    this.#loops = loops;
    return body;
  }

  #branches() {
    const branches: { test: Expression | null; body: Statement[] }[] = [];
    for (let name = "if"; ; ) {
      const test = name === "else" ? null : this.#expressions.tuple({ conditions: false });
      this.#tokens.expect("end");
      const body = this.body(...(test ? ["elif", "else", "endif"] : ["endif"]));
      branches.push({ test, body });
      name = this.#branch();
      if (name !== "endif") continue;
      this.#tokens.expect("end");
      return branches;
    }
  }

  #for(line: number): Statement {
    const tokens = this.#tokens;
    const target = this.#expressions.target("in");
    tokens.expect("name", "in");
    const items = this.#expressions.tuple({ conditions: false, end: "recursive" });
    const test = tokens.skip("name", "if") ? this.#expressions.expression() : null;
    const recursive = tokens.skip("name", "recursive");
    tokens.expect("end");
    this.#loops += 1;
    const body = this.body("else", "endfor");
    this.#loops -= 1;
    let otherwise: Statement[] = [];
    if (this.#branch() === "else") {
      tokens.expect("end");
      otherwise = this.body("endfor");
      this.#branch();
    }
    tokens.expect("end");
    return { type: "for", target, items, test, recursive, body, otherwise, line };
  }

  #set(line: number): Statement {
    const tokens = this.#tokens;
    const target = this.#expressions.target();
    if (tokens.skip("operator", "=")) {
      const value = this.#expressions.tuple();
      tokens.expect("end");
      return { type: "set", target, value, line };
    }
    const filter = tokens.skip("operator", "|")
      ? this.#expressions.filters(this.#expressions.filter(null))
      : null;
    return { type: "set block", target, filter, body: this.#block("endset"), line };
  }

  #with(line: number): Statement {
    const tokens = this.#tokens;
    const targets: [Target, Expression][] = [];
    while (!tokens.is("end")) {
      if (targets.length > 0) tokens.expect("operator", ",");
      const target = this.#expressions.target();
      tokens.expect("operator", "=");
      targets.push([target, this.#expressions.expression()]);
    }
    return { type: "with", targets, body: this.#block("endwith"), line };
  }

  #parameters(): Parameters {
    const tokens = this.#tokens;
    const parameters: Parameters = { names: [], defaults: [] };
    tokens.expect("operator", "(");
    while (!tokens.skip("operator", ")")) {
      if (parameters.names.length > 0) tokens.expect("operator", ",");
      parameters.names.push(tokens.expect("name").text);
      if (tokens.skip("operator", "=")) parameters.defaults.push(this.#expressions.expression());
      else if (parameters.defaults.length > 0) {
        tokens.fail("non-default argument follows default argument");
      }
    }
    return parameters;
  }
}
