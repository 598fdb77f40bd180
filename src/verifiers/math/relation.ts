import { proportional } from "./expression.ts";
import { NotComputable } from "./functions.ts";
import { type Comparison, equalLeaves, expressionOf, type Leaf } from "./leaf.ts";
import { isName } from "./name.ts";
import type { Shape } from "./shape.ts";

type Relation = Extract<Shape, { kind: "relation" }>;
type Group = Extract<Shape, { kind: "tuple" }>;

const FLIPPED: Record<string, string> = { ">": "<", "\\ge": "\\le" };

const SYMMETRIC = new Set(["=", "\\ne", "\\approx"]);

/**
 * Equal sides in order, or, for two sides, differences that are multiples of each other: `x+y=1` and
 * `2x=2-2y`. Greater-than chains are read from the right, so `3>x` is `x<3`. A truth that is solved, such as `x=3` or
 * `x<3`, is not told by a relation that is still to be solved.
 */
export function equalRelations(truth: Relation, answer: Relation, comparison: Comparison): boolean {
  const [left, right] = [ascending(truth), ascending(answer)];
  if (left.operators.join() !== right.operators.join()) return false;
  const symmetric = left.operands.length === 2 && SYMMETRIC.has(left.operators[0] as string);
  const swapped = { ...right, operands: [...right.operands].reverse() };
  if (equalSides(left, right, comparison) || (symmetric && equalSides(left, swapped, comparison))) {
    return comparison.question?.allowsRelation(left, right) ?? true;
  }
  if (left.operands.length !== 2) return false;
  if (isSolved(left, comparison) && (left.operators[0] === "=" || !isSignedBound(right)))
    return false;
  if (!symmetric && left.operators[0] !== "<" && left.operators[0] !== "\\le") return false;
  const [a, b] = [differenceOf(left), differenceOf(right)];
  if (a === null || b === null) return false;
  const [first, second] = [expressionOf(a, comparison), expressionOf(b, comparison)];
  if (!proportional(first, second, !symmetric, comparison.budget)) return false;
  return comparison.question?.allowsRelation(left, right) ?? true;
}

/** Whether a relation gives a name a number. */
function isSolved({ operands: [a, b] }: Relation, comparison: Comparison): boolean {
  const constant = (side: Shape | undefined) =>
    side?.kind === "expression" && isConstant(side.text, comparison);
  return (isName(a) && constant(b)) || (isName(b) && constant(a));
}

/** `-x<-1`, which is `x>1` but for the sign. */
function isSignedBound({ operands }: Relation): boolean {
  const signed = (side: Shape) =>
    side.kind === "expression" && /^-?(?:[a-zA-Z]|\\[a-z]+)$/.test(side.text);
  return operands.some(signed);
}

function isConstant(text: string, comparison: Comparison): boolean {
  try {
    return expressionOf(text, comparison).variables.size === 0;
  } catch (error) {
    if (error instanceof NotComputable) return false;
    throw error;
  }
}

function ascending(relation: Relation): Relation {
  if (!relation.operators.every((operator) => operator in FLIPPED)) return relation;
  return {
    kind: "relation",
    operators: relation.operators.map((operator) => FLIPPED[operator] as string).reverse(),
    operands: [...relation.operands].reverse(),
  };
}

function equalSides(truth: Relation, answer: Relation, comparison: Comparison): boolean {
  return truth.operands.every((operand, at) => {
    const other = answer.operands[at];
    if (operand.kind !== "expression" || other?.kind !== "expression") return false;
    return equalOrUnknown(operand, other, comparison);
  });
}

/** A side such as `f^{-1}(x)` can't be computed, and still the difference of the sides may be compared. */
function equalOrUnknown(truth: Leaf, answer: Leaf, comparison: Comparison): boolean {
  try {
    return equalLeaves(truth, answer, comparison);
  } catch (error) {
    if (error instanceof NotComputable) return false;
    throw error;
  }
}

function differenceOf({ operands: [low, high] }: Relation): string | null {
  if (low?.kind !== "expression" || high?.kind !== "expression") return null;
  return `(${high.text})-(${low.text})`;
}

const INFINITY: Shape = { kind: "expression", text: "\\infty", unit: null };
const MINUS_INFINITY: Shape = { kind: "expression", text: "-\\infty", unit: null };

const REAL_LINE: Group = {
  kind: "tuple",
  open: "(",
  close: ")",
  items: [MINUS_INFINITY, INFINITY],
};

/** The intervals of an inequality in one variable, of an interval, or of a union; null for the rest. */
export function intervalsOf(shape: Shape): Group[] | null {
  if (shape.kind === "tuple" && shape.items.length === 2) return [shape];
  if (shape.kind === "union" || shape.kind === "list") {
    const parts = shape.items.map(intervalsOf);
    return parts.every((part) => part !== null) ? parts.flat() : null;
  }
  if (shape.kind === "expression" && shape.text === "\\mathbb{R}") return [REAL_LINE];
  if (shape.kind === "set" && shape.items.length === 1) return intervalsOf(shape.items[0] as Shape);
  return shape.kind === "relation" ? intervalOf(ascending(shape)) : null;
}

function intervalOf({ operators, operands }: Relation): Group[] | null {
  if (!operators.every((operator) => operator === "<" || operator === "\\le")) return null;
  const [a, b, c] = operands;
  const [first, second] = operators;
  if (a === undefined || b === undefined) return null;
  if (c !== undefined && isDistance(b)) return eitherSide(a, first, c, second);
  if (c === undefined && isDistance(a)) return [interval(minus(b), first, b, first)];
  if (c === undefined && isDistance(b)) return eitherSide(a, first, INFINITY, "<");
  if (c !== undefined)
    return operands.length === 3 && isVariable(b) ? [interval(a, first, c, second)] : null;
  if (isVariable(a)) return [interval(MINUS_INFINITY, "<", b, first)];
  return isVariable(b) ? [interval(a, first, INFINITY, "<")] : null;
}

/** `|z|` of a real z. */
function isDistance(shape: Shape): boolean {
  return shape.kind === "expression" && /^\|[a-zA-Z]\|$/.test(shape.text);
}

function minus(side: Shape): Shape {
  if (side.kind !== "expression") throw new NotComputable("a bound is no number");
  return { ...side, text: side === INFINITY ? "-\\infty" : `-(${side.text})` };
}

/** `1\le|z|<2`: two intervals. */
function eitherSide(
  low: Shape,
  after: string | undefined,
  high: Shape,
  before: string | undefined,
): Group[] {
  return [interval(low, after, high, before), interval(minus(high), before, minus(low), after)];
}

function interval(
  low: Shape,
  after: string | undefined,
  high: Shape,
  before: string | undefined,
): Group {
  return {
    kind: "tuple",
    open: after === "<" ? "(" : "[",
    close: before === "<" ? ")" : "]",
    items: [low, high],
  };
}

function isVariable(shape: Shape): boolean {
  return shape.kind === "expression" && isName(shape) && !/^\|/.test(shape.text);
}
