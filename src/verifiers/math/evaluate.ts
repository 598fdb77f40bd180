import type { MathJsonExpression } from "@cortex-js/compute-engine/latex-syntax";
import { NotComputable, OPERATIONS } from "./functions.ts";
import { bitLength, integerOf, parseDecimal } from "./rational.ts";
import { add, exact, float, isDefined, multiply, UNDEFINED, type Value } from "./value.ts";

/** Work left for one grade. It counts steps and not time, so that equal answers get equal rewards. */
export type Budget = { steps: number };

/** Values of the variables, and whether a value off the real line is undefined. */
export type Point = { variable: (name: string) => Value; real: boolean };

type Scope = { point: Point; budget: Budget; bound: Map<string, Value> };

const MAX_TERMS = 200;

/** The value of parsed LaTeX (MathJSON) at a point. @throws NotComputable */
export function evaluate(tree: MathJsonExpression, point: Point, budget: Budget): Value {
  return valueIn(tree, { point, budget, bound: new Map() });
}

function valueIn(tree: MathJsonExpression, scope: Scope): Value {
  if (--scope.budget.steps < 0) throw new NotComputable("the expression takes too much work");
  if (typeof tree === "number") return numeral(String(tree));
  if (typeof tree === "string") return symbol(tree, scope);
  if (Array.isArray(tree)) return apply(tree as [string, ...MathJsonExpression[]], scope);
  if (typeof tree === "object" && tree !== null && "num" in tree) return numeral(tree.num);
  throw new NotComputable("the expression could not be parsed");
}

function numeral(text: string): Value {
  const value = parseDecimal(text);
  if (value === null) throw new NotComputable(`the number ${text.slice(0, 20)} is out of range`);
  return exact(value.n, value.d);
}

const CONSTANTS = new Map<string, Value>([
  ["Pi", float(Math.PI, 0, 0)],
  ["e", float(Math.E, 0, 0)],
  ["ExponentialE", float(Math.E, 0, 0)],
]);
const IMAGINARY = new Set(["i", "ImaginaryUnit"]);

/** Names that the parser gives to things which are no variables. */
const NO_VARIABLE =
  /^(?:'|Nothing$|EmptySet$|PositiveInfinity$|NegativeInfinity$|ComplexInfinity$)/;

function symbol(name: string, scope: Scope): Value {
  const bound = scope.bound.get(name);
  if (bound !== undefined) return bound;
  if (IMAGINARY.has(name)) return float(0, 1, 0);
  const constant = CONSTANTS.get(name);
  if (constant !== undefined) return constant;
  if (NO_VARIABLE.test(name)) throw new NotComputable(`${name} has no value`);
  return scope.point.variable(name);
}

/** The variables of an expression, its operations, and whether it speaks of the imaginary unit. */
export function symbolsOf(tree: MathJsonExpression): {
  variables: Set<string>;
  heads: Set<string>;
  complex: boolean;
} {
  const names = new Set<string>();
  const heads = new Set<string>();
  const bound = new Set<string>();
  const pending: MathJsonExpression[] = [tree];
  for (let next = pending.pop(); next !== undefined; next = pending.pop()) {
    if (typeof next === "string") names.add(next);
    else if (Array.isArray(next)) {
      heads.add(String(next[0]));
      if (next[0] === "Tuple") bound.add(String(next[1]));
      pending.push(...(next.slice(1) as MathJsonExpression[]));
    }
  }
  const complex = [...names].some((name) => IMAGINARY.has(name));
  for (const name of names) {
    if (bound.has(name) || IMAGINARY.has(name) || CONSTANTS.has(name) || NO_VARIABLE.test(name))
      names.delete(name);
  }
  return { variables: names, heads, complex };
}

function apply([head, ...operands]: [string, ...MathJsonExpression[]], scope: Scope): Value {
  if (head === "Sum" || head === "Product") return repeat(head, operands, scope);
  const values = operands.map((operand) => valueIn(operand, scope));
  if (!values.every(isDefined)) return UNDEFINED;
  const result = compute(head, values, scope);
  if (scope.point.real && result.kind === "float" && result.im !== 0) return UNDEFINED;
  return result;
}

function compute(head: string, values: Value[], scope: Scope): Value {
  const [a, b] = values;
  const operation = OPERATIONS.get(head);
  if (operation && a !== undefined && values.length <= operation.arity) {
    scope.budget.steps -= extraSteps(head, values);
    if (scope.budget.steps < 0) throw new NotComputable("the expression takes too much work");
    const second = b ?? operation.second ?? (operation.arity === 2 ? undefined : a);
    if (second !== undefined) return operation.run(a, second, values);
  }
  // `P(x)` reads as a function, yet the letter may be a factor. As a product it equals itself alone.
  if (/^[A-Za-z]$/.test(head) && a !== undefined && b === undefined) {
    return multiply(symbol(head, scope), a);
  }
  throw new NotComputable(`${head} is not something that can be computed`);
}

/** What an operation on big numbers costs beyond one step. */
function extraSteps(head: string, values: Value[]): number {
  let steps = 0;
  for (const value of values) {
    if (value.kind === "exact") steps += (bitLength(value.n) + bitLength(value.d)) >> 7;
  }
  const [first] = values;
  const factors = head === "Factorial" || head === "Binomial" || head === "Power";
  if (factors && first?.kind === "exact") {
    steps += Math.min(Math.abs(Number(first.n / first.d)), 5_000) / 10;
  }
  return steps;
}

function repeat(head: "Sum" | "Product", operands: MathJsonExpression[], scope: Scope): Value {
  const [body, range] = operands;
  if (body === undefined || !Array.isArray(range) || range.length !== 4 || operands.length > 2) {
    throw new NotComputable("only sums and products over one index can be computed");
  }
  const [, index, from, to] = range as [string, string, MathJsonExpression, MathJsonExpression];
  const [low, high] = [wholeNumber(from, scope), wholeNumber(to, scope)];
  if (low === null || high === null) return UNDEFINED;
  if (high - low > MAX_TERMS) throw new NotComputable("the sum has too many terms");
  let total: Value = exact(head === "Sum" ? 0n : 1n);
  for (let at = low; at <= high; at++) {
    const bound = new Map(scope.bound).set(index, exact(BigInt(at)));
    const term = valueIn(body, { ...scope, bound });
    if (!isDefined(term) || !isDefined(total)) return UNDEFINED;
    scope.budget.steps -= extraSteps(head, [total, term]);
    total = head === "Sum" ? add(total, term) : multiply(total, term);
  }
  return total;
}

function wholeNumber(tree: MathJsonExpression, scope: Scope): number | null {
  const value = valueIn(tree, scope);
  const whole = value.kind === "exact" ? integerOf(value) : null;
  return whole === null || whole > 1_000_000n || whole < -1_000_000n ? null : Number(whole);
}
