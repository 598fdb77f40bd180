import { proportional } from "./expression.ts";
import { NotComputable } from "./functions.ts";
import { type Comparison, equalLeaves, expressionOf, type Leaf } from "./leaf.ts";
import type { Shape } from "./shape.ts";

type Relation = Extract<Shape, { kind: "relation" }>;
type Group = Extract<Shape, { kind: "tuple" }>;

const FLIPPED: Record<string, string> = { ">": "<", "\\ge": "\\le" };

/**
 * Equal sides in order, or, for two sides, differences that are multiples of each other: `x+y=1` and
 * `2x=2-2y`. Greater-than chains are read from the right, so `3>x` is `x<3`.
 */
export function equalRelations(truth: Relation, answer: Relation, comparison: Comparison): boolean {
  const [left, right] = [ascending(truth), ascending(answer)];
  if (left.operators.join() !== right.operators.join()) return false;
  if (equalSides(left, right, comparison)) return true;
  if (left.operands.length !== 2) return false;
  const symmetric = left.operators[0] === "=" || left.operators[0] === "\\ne";
  if (!symmetric && left.operators[0] !== "<" && left.operators[0] !== "\\le") return false;
  const [a, b] = [differenceOf(left), differenceOf(right)];
  if (a === null || b === null) return false;
  return proportional(
    expressionOf(a, comparison),
    expressionOf(b, comparison),
    !symmetric,
    comparison.budget,
  );
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
  if (c !== undefined)
    return operands.length === 3 && isVariable(b) ? [interval(a, first, c, second)] : null;
  if (isVariable(a)) return [interval(MINUS_INFINITY, "<", b, first)];
  return isVariable(b) ? [interval(a, first, INFINITY, "<")] : null;
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
  return (
    shape.kind === "expression" &&
    /^(?:[a-zA-Z]|\\(?:alpha|beta|theta|lambda|mu))(?:_\w)?$/.test(shape.text)
  );
}
