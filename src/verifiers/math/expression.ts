import type { MathJsonExpression } from "@cortex-js/compute-engine/latex-syntax";
import { type Budget, evaluate, type Point, symbolsOf } from "./evaluate.ts";
import { NotComputable } from "./functions.ts";
import { guardedLatex } from "./guard.ts";
import { equalRationals } from "./rational.ts";
import { sampleReals } from "./sample.ts";
import { isDefined, magnitude, toFloat, type Value } from "./value.ts";

type LatexSyntax = typeof import("@cortex-js/compute-engine/latex-syntax");

/** Null where the parser gave up. */
export type ParseLatex = (latex: string) => MathJsonExpression | null;

/** An arithmetic expression, with its values kept so that a set of n needs n evaluations, not n². */
export type Expression = {
  text: string;
  tree: MathJsonExpression;
  variables: Set<string>;
  complex: boolean;
  /** The names of its operations. */
  heads: Set<string>;
  values: Map<string, Value>;
};

/** The library is loaded at its first use: most grades are decided without it. */
export function latexParser(): ParseLatex {
  const { parse } = require("@cortex-js/compute-engine/latex-syntax") as LatexSyntax;
  return (latex) => {
    try {
      return parse(latex);
    } catch {
      return null;
    }
  };
}

/** @throws NotComputable where the text is not arithmetic. */
export function parseExpression(text: string, parse: ParseLatex): Expression {
  const latex = guardedLatex(text);
  if (latex === null || latex === "") throw new NotComputable("it is not an arithmetic expression");
  const tree = parse(latex);
  if (tree === null) throw new NotComputable("it could not be parsed");
  return { text, tree, ...symbolsOf(tree), values: new Map() };
}

const POINTS = 14;
const MIN_AGREEING = 3;
/** How many times its own rounding bound two values may differ. */
const SLACK = 32;
/** Two large constants that differ by one have to be told apart. */
const MAX_ERROR = 1e-3;
/** A point whose rounding is coarser than this says nothing. */
const MAX_COARSENESS = 1e-7;

/**
 * Whether two expressions have equal values. Constants are compared once; variables take fixed values
 * at up to 14 points. A point where either side is undefined (outside the real domain, a pole) says
 * nothing; one where they differ decides; at least three must agree. Rational values are compared
 * exactly.
 * @throws NotComputable where nothing could be decided.
 */
export function equalExpressions(a: Expression, b: Expression, budget: Budget): boolean {
  const real = !a.complex && !b.complex;
  const constant = a.variables.size + b.variables.size === 0;
  let agreeing = 0;
  for (let index = 0; index < (constant ? 1 : POINTS); index++) {
    const verdict = equalValues(
      valueAt(a, index, real, budget),
      valueAt(b, index, real, budget),
      constant,
    );
    if (verdict === false) return false;
    if (verdict === true) agreeing++;
  }
  if (agreeing >= (constant ? 1 : MIN_AGREEING)) return true;
  throw new NotComputable("too few points have a value");
}

/** @throws NotComputable where the expression has a value at no point, not even off the real line. */
export function requireValue(expression: Expression, budget: Budget): void {
  for (let index = 0; index < POINTS; index++) {
    if (isDefined(valueAt(expression, index, false, budget))) return;
  }
  throw new NotComputable("it has no value");
}

/** The value of a constant expression on the real line, or null. */
export function realConstant(expression: Expression, budget: Budget): number | null {
  if (expression.variables.size > 0) return null;
  const value = valueAt(expression, 0, false, budget);
  if (!isDefined(value)) return null;
  const { re, im } = toFloat(value);
  return im === 0 ? re : null;
}

/**
 * Whether `a` is a constant multiple of `b`, as `2x-2y` is of `x-y`: the equations `a = 0` and `b = 0`
 * are then one. With `positive` so are the inequalities.
 */
export function proportional(
  a: Expression,
  b: Expression,
  positive: boolean,
  budget: Budget,
): boolean {
  const ratios: number[] = [];
  for (let index = 0; index < POINTS; index++) {
    const top = valueAt(a, index, true, budget);
    const bottom = valueAt(b, index, true, budget);
    if (!isDefined(top) || !isDefined(bottom)) continue;
    const [above, below] = [toFloat(top), toFloat(bottom)];
    if (Math.abs(below.re) <= SLACK * below.error || Math.abs(above.re) <= SLACK * above.error) {
      if (above.re === below.re) continue;
      return false;
    }
    ratios.push(above.re / below.re);
  }
  const [ratio] = ratios;
  if (ratio === undefined || ratios.length < MIN_AGREEING) {
    throw new NotComputable("too few points have a value");
  }
  if (positive && ratio <= 0) return false;
  return ratios.every((other) => Math.abs(other - ratio) <= 1e-9 * Math.abs(ratio));
}

function valueAt(expression: Expression, index: number, real: boolean, budget: Budget): Value {
  const key = `${index}${real}`;
  const known = expression.values.get(key);
  if (known !== undefined) return known;
  const point: Point = { variable: (name) => sampleReals(name, index), real };
  const value = evaluate(expression.tree, point, budget);
  expression.values.set(key, value);
  return value;
}

/** True or false, or null where the point says nothing. */
function equalValues(a: Value, b: Value, constant: boolean): boolean | null {
  if (a.kind === "exact" && b.kind === "exact") return equalRationals(a, b);
  if (!isDefined(a) || !isDefined(b)) return null;
  const [left, right] = [toFloat(a), toFloat(b)];
  const tolerance = SLACK * (left.error + right.error);
  const size = Math.max(1, magnitude(left), magnitude(right));
  const equal = Math.hypot(left.re - right.re, left.im - right.im) <= tolerance;
  if (equal && tolerance > (constant ? MAX_ERROR : MAX_COARSENESS * size)) return null;
  return equal;
}
