import type { Budget } from "./evaluate.ts";
import {
  type Expression,
  equalExpressions,
  type ParseLatex,
  parseExpression,
  realConstant,
  requireValue,
} from "./expression.ts";
import { formOf } from "./form.ts";
import { NotComputable } from "./functions.ts";
import {
  equalInBase,
  equalNumbers,
  namesItsBase,
  type PlainNumber,
  parsePlainNumber,
} from "./number.ts";
import type { Question } from "./question.ts";
import type { Shape } from "./shape.ts";
import { sameUnit } from "./unit.ts";

/** What one grade compares with: the parser, what is already parsed, the work that is left, and what was asked. */
export type Comparison = {
  parse: ParseLatex;
  parsed: Map<string, Expression>;
  budget: Budget;
  /** Null where only the truth is known. */
  question: Question | null;
  /** What two values in brackets are, where the question tells. */
  pair: "point" | "interval" | null;
};

export type Leaf = Extract<Shape, { kind: "expression" }>;

/**
 * Both as numbers where they are, else both as expressions. Two different units are never equal, and an answer is as
 * far worked out as the truth is.
 */
export function equalLeaves(truth: Leaf, answer: Leaf, comparison: Comparison): boolean {
  const { question } = comparison;
  if (!sameUnit(truth.unit, answer.unit)) return false;
  if (
    truth.unit === null &&
    answer.unit &&
    question &&
    !question.allowsUnit(answer.unit, truth.text)
  )
    return false;
  if (truth.text === answer.text) return true;
  if (isLiteral(truth.text) || isLiteral(answer.text)) return false;
  if (equalInBase(truth.text, answer.text, question?.namesBase ?? false)) return true;
  const left = parsePlainNumber(truth.text);
  const right = parsePlainNumber(answer.text);
  const equal =
    left && right
      ? equalNumbers(left, right) && !question?.confusesPercent(left, right)
      : equalAsExpressions(truth.text, answer.text, left ?? right, comparison);
  return (
    equal && isWorkedOut(truth, answer, comparison) && (question?.allows(truth, answer) ?? true)
  );
}

/** A truth that is a constant is not told by variables that cancel, nor by a sum to be added up. */
function isWorkedOut(truth: Leaf, answer: Leaf, comparison: Comparison): boolean {
  if (parsePlainNumber(answer.text)) return true;
  const [left, right] = [
    expressionOf(truth.text, comparison),
    expressionOf(answer.text, comparison),
  ];
  if (left.variables.size > 0) return true;
  return (
    right.variables.size === 0 &&
    [...UNWORKED].every((head) => !right.heads.has(head) || left.heads.has(head))
  );
}

const UNWORKED = new Set(["Sum", "Product", "GCD", "Max", "Min"]);

/** Whether the left side of an equation is what is asked for: `m+n`, or a formula that the question asks the value of. */
export function tellsValue(side: Leaf, comparison: Comparison): boolean {
  try {
    const { variables } = expressionOf(side.text, comparison);
    if (variables.size === 0) return false;
    return comparison.question
      ? comparison.question.asksFor(side, variables.size)
      : variables.size >= 2;
  } catch (error) {
    if (error instanceof NotComputable) return false;
    throw error;
  }
}

const LITERALS = new Set(["\\infty", "-\\infty", "\\emptyset", ""]);
/** A set of numbers by its letter, or a full hour. */
const LITERAL = /^(?:\\mathbb\{[CNQRZ]\}|\d{1,2}:00)$/;

/** What equals nothing but its own spelling. */
function isLiteral(text: string): boolean {
  return LITERALS.has(text) || LITERAL.test(text);
}

/** @throws NotComputable where the leaf can only be compared by its spelling. */
export function requireComputable(leaf: Leaf, comparison: Comparison): void {
  if (isLiteral(leaf.text) || namesItsBase(leaf.text) || parsePlainNumber(leaf.text)) return;
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
    if (Math.abs(a) > MAX_DOUBLE)
      throw new NotComputable("it is too large to be compared as a decimal");
    return withinRounding(a, b);
  }
  try {
    return equalExpressions(left, right, comparison.budget);
  } catch (error) {
    if (!(error instanceof NotComputable) || left.heads.has("Error")) throw error;
    if (formOf(left.tree).key !== formOf(right.tree).key) throw error;
    return true;
  }
}

/** Above this a double says nothing about the sixth place. */
const MAX_DOUBLE = 1e9;

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
