import type { Operator } from "./arithmetic.ts";
import type { Value } from "./values.ts";

export type Comparison = "==" | "!=" | "<" | ">" | "<=" | ">=" | "in" | "not in";

export type CallArguments = {
  positional: Expression[];
  named: [string, Expression][];
  /** `*more` and `**named`. */
  spread: Expression | null;
  spreadNamed: Expression | null;
};

export type Expression =
  | { type: "constant"; value: Value }
  | { type: "name"; name: string }
  | { type: "list" | "tuple"; items: Expression[] }
  | { type: "dict"; entries: [Expression, Expression][] }
  | { type: "attribute"; of: Expression; name: string }
  | { type: "item"; of: Expression; key: Expression }
  | { type: "slice"; of: Expression; parts: (Expression | null)[] }
  | { type: "call"; of: Expression; args: CallArguments; line: number }
  | { type: "filter"; of: Expression | null; name: string; args: CallArguments; line: number }
  | { type: "test"; of: Expression; name: string; args: CallArguments; line: number }
  | { type: "compute"; operator: Operator; left: Expression; right: Expression; line: number }
  | { type: "negate" | "plus" | "not"; of: Expression }
  | { type: "concat"; parts: Expression[] }
  | { type: "compare"; first: Expression; rest: [Comparison, Expression][] }
  | { type: "and" | "or"; left: Expression; right: Expression }
  | { type: "condition"; test: Expression; yes: Expression; no: Expression | null };

/** What `set` and `for` assign to. */
export type Target =
  | { type: "name"; name: string }
  | { type: "field"; of: string; name: string }
  | { type: "targets"; items: Target[] };

export type Parameters = { names: string[]; defaults: Expression[] };

export type Statement = { line: number } & (
  | { type: "data"; text: string }
  | { type: "output"; of: Expression }
  | { type: "if"; branches: { test: Expression | null; body: Statement[] }[] }
  | {
      type: "for";
      target: Target;
      items: Expression;
      test: Expression | null;
      recursive: boolean;
      body: Statement[];
      otherwise: Statement[];
    }
  | { type: "set"; target: Target; value: Expression }
  | { type: "set block"; target: Target; filter: Expression | null; body: Statement[] }
  | { type: "macro"; name: string; parameters: Parameters; body: Statement[] }
  | { type: "call block"; call: Expression; parameters: Parameters; body: Statement[] }
  | { type: "filter block"; filter: Expression; body: Statement[] }
  | { type: "with"; targets: [Target, Expression][]; body: Statement[] }
  | { type: "scope"; body: Statement[] }
  | { type: "break" | "continue" }
);
