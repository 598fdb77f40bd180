import type { Budget } from "./evaluate.ts";
import {
  type Expression,
  equalExpressions,
  type ParseLatex,
  parseExpression,
  realConstant,
  requireValue,
} from "./expression.ts";
import { equalInBase, equalNumbers, type PlainNumber, parsePlainNumber } from "./number.ts";
import type { Shape } from "./shape.ts";

/** What one grade compares with: the parser, what is already parsed, and the work that is left. */
export type Comparison = {
  parse: ParseLatex;
  parsed: Map<string, Expression>;
  budget: Budget;
};

export type Leaf = Extract<Shape, { kind: "expression" }>;

/** Both as numbers where they are, else both as expressions. Two different units are never equal. */
export function equalLeaves(truth: Leaf, answer: Leaf, comparison: Comparison): boolean {
  if (truth.unit !== null && answer.unit !== null && truth.unit !== answer.unit) return false;
  if (truth.text === answer.text) return true;
  if (isLiteral(truth.text) || isLiteral(answer.text)) return false;
  if (equalInBase(truth.text, answer.text)) return true;
  const left = parsePlainNumber(truth.text);
  const right = parsePlainNumber(answer.text);
  if (left && right) return equalNumbers(left, right);
  return equalAsExpressions(truth.text, answer.text, left ?? right, comparison);
}

const LITERALS = new Set(["\\infty", "-\\infty", "\\emptyset", "\\mathbb{R}", "\\mathbb{Z}", ""]);

/** What equals nothing but its own spelling. */
function isLiteral(text: string): boolean {
  return LITERALS.has(text);
}

/** @throws NotComputable where the leaf can only be compared by its spelling. */
export function requireComputable(leaf: Leaf, comparison: Comparison): void {
  if (isLiteral(leaf.text) || parsePlainNumber(leaf.text)) return;
  requireValue(expressionOf(leaf.text, comparison), comparison.budget);
}

function equalAsExpressions(
  truth: string,
  answer: string,
  number: PlainNumber | null,
  comparison: Comparison,
): boolean {
  const left = expressionOf(truth, comparison);
  const right = expressionOf(answer, comparison);
  if (number?.decimal) {
    const [a, b] = [left, right].map((side) => realConstant(side, comparison.budget));
    if (a == null || b == null) return false;
    return withinRounding(a, b);
  }
  return equalExpressions(left, right, comparison.budget);
}

/** The same rule as between written decimals: the sixth place, and a thousandth of small numbers. */
function withinRounding(a: number, b: number): boolean {
  const difference = Math.abs(a - b);
  return difference <= 5e-7 && difference <= 1e-3 * Math.max(Math.abs(a), Math.abs(b));
}

/** A percent sign inside an expression is a hundredth; a ratio `a:b` is a quotient. */
export function expressionOf(text: string, comparison: Comparison): Expression {
  const known = comparison.parsed.get(text);
  if (known) return known;
  const ratio = /^([^:]+):([^:]+)$/.exec(text);
  const plain = (ratio ? `(${ratio[1]})/(${ratio[2]})` : text).replace(
    /%$/,
    "\\cdot\\frac{1}{100}",
  );
  const expression = parseExpression(plain, comparison.parse);
  comparison.parsed.set(text, expression);
  return expression;
}
