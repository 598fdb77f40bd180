import { NotComputable } from "./functions.ts";
import { type Comparison, equalLeaves } from "./leaf.ts";
import { equalRelations, intervalsOf } from "./relation.ts";
import type { Shape } from "./shape.ts";

/**
 * Whether the answer is the truth. The two are not alike: the truth's form decides, so an answer
 * `x=5` counts for a truth `5`, but a truth `x^2+y^2=1` does not shrink to `1`.
 * @throws NotComputable where that could not be found out.
 */
export function equalShapes(truth: Shape, answer: Shape, comparison: Comparison): boolean {
  const [left, right] = withoutAssignment(members(truth), members(answer));
  if (left.kind === "relation" && right.kind === "relation") {
    return equalRelations(left, right, comparison);
  }
  if (isRegion(left) || isRegion(right)) return equalRegions(left, right, comparison);
  if (left.kind === "words" || right.kind === "words") return equalWords(left, right);
  if (left.kind === "matrix" && right.kind === "matrix") {
    return equalMatrices(left.rows, right.rows, comparison);
  }
  if (left.kind === "tuple" && right.kind === "tuple") return equalGroups(left, right, comparison);
  if (left.kind === "tuple" || right.kind === "tuple") {
    return equalGroupAndList(left, right, comparison);
  }
  if (left.kind === "expression" && right.kind === "expression")
    return equalLeaves(left, right, comparison);
  return equalCollections(left, right, comparison);
}

/** `x\in[1,2]` is told by its right side whatever it is compared with. */
function members(shape: Shape): Shape {
  const named = shape.kind === "relation" && shape.operators.join() === "\\in";
  return named && isName(shape.operands[0]) ? lastOperand(shape) : shape;
}

const TELLING = new Set(["=", "\\in", "\\approx", "\\equiv"]);

/** `x=5`, `f(x)=x+1` and `m+n=12` state their right side; a truth does so only for a name. */
function withoutAssignment(truth: Shape, answer: Shape): [Shape, Shape] {
  if (truth.kind === "relation" && answer.kind === "relation") return [truth, answer];
  if (answer.kind === "relation" && isEquation(answer)) return [truth, lastOperand(answer)];
  if (truth.kind === "relation" && isEquation(truth) && isName(truth.operands[0])) {
    return [lastOperand(truth), answer];
  }
  return [truth, answer];
}

type Relation = Extract<Shape, { kind: "relation" }>;

function isEquation(shape: Relation): boolean {
  return shape.operators.every((operator) => TELLING.has(operator));
}

function lastOperand(shape: Relation): Shape {
  return shape.operands.at(-1) as Shape;
}

const SYMBOL = String.raw`(?:[a-zA-Z]|[A-Z]{2,}|\\[a-zA-Z]+)`;
const NAME = new RegExp(
  String.raw`^${SYMBOL}(?:_\w|_\{\w+\})?'?(?:\([a-z,]+\))?$|^\\(?:angle|triangle) ?[A-Z]+$`,
);
const RATIO_OF_NAMES = /^\\frac\{[a-z]\}\{[a-z]\}$/;

/** What a truth may give a value to: `x`, `x_1`, `\theta`, `f(x)`, `(x,y)`, `AB`, `\text{area}`. */
function isName(shape: Shape | undefined): boolean {
  if (shape?.kind === "tuple") return shape.items.every(isName);
  if (shape?.kind === "words") return true;
  if (shape?.kind !== "expression") return false;
  return NAME.test(shape.text) || RATIO_OF_NAMES.test(shape.text);
}

function isRegion(shape: Shape): boolean {
  if (shape.kind === "expression") return shape.text === "\\mathbb{R}";
  return shape.kind === "relation" || shape.kind === "union";
}

/** `1<x<2` and `(1,2)`, `x>3` and `(3,\infty)`, `x\le 0\text{ or }x>1` and a union. */
function equalRegions(truth: Shape, answer: Shape, comparison: Comparison): boolean {
  const left = intervalsOf(truth);
  const right = intervalsOf(answer);
  if (left === null || right === null) return equalCollections(truth, answer, comparison);
  return left.length === right.length && sameItems(left, right, comparison);
}

function equalWords(truth: Shape, answer: Shape): boolean {
  if (truth.kind !== "words" && truth.kind !== "expression") return false;
  if (answer.kind !== "words" && answer.kind !== "expression") return false;
  return truth.text.toLowerCase() === answer.text.toLowerCase();
}

function equalMatrices(truth: Shape[][], answer: Shape[][], comparison: Comparison): boolean {
  if (truth.length !== answer.length) return false;
  return truth.every((row, at) => equalInOrder(row, answer[at] as Shape[], comparison));
}

type Group = Extract<Shape, { kind: "tuple" }>;

/** Two items may be an interval, whose brackets mean something; three or more are a tuple or a vector. */
function equalGroups(truth: Group, answer: Group, comparison: Comparison): boolean {
  const brackets = truth.open === answer.open && truth.close === answer.close;
  const pointed = truth.open === "\\langle" || answer.open === "\\langle";
  if (truth.items.length === 2 && !brackets && !pointed) return false;
  return equalInOrder(truth.items, answer.items, comparison);
}

/** A list without brackets is a tuple when its order is the tuple's. A set has no order to offer. */
function equalGroupAndList(truth: Shape, answer: Shape, comparison: Comparison): boolean {
  const [group, other] = truth.kind === "tuple" ? [truth, answer] : [answer, truth];
  if (group.kind !== "tuple" || other.kind !== "list") return false;
  if (group.items.length === 2 && (group.open !== "(" || group.close !== ")")) return false;
  return truth === group
    ? equalInOrder(group.items, other.items, comparison)
    : equalInOrder(other.items, group.items, comparison);
}

function equalInOrder(truth: Shape[], answer: Shape[], comparison: Comparison): boolean {
  if (truth.length !== answer.length) return false;
  return truth.every((item, at) => equalShapes(item, answer[at] as Shape, comparison));
}

/** Sets, unions and lists, in any order. Without set braces a value counts as often as it is written. */
function equalCollections(truth: Shape, answer: Shape, comparison: Comparison): boolean {
  if (!hasItems(truth) && !hasItems(answer)) return false;
  if ((truth.kind === "union") !== (answer.kind === "union")) return false;
  const left = hasItems(truth) ? truth.items : [truth];
  const right = hasItems(answer) ? answer.items : [answer];
  if (truth.kind === "set" || answer.kind === "set") return sameItems(left, right, comparison);
  return left.length === right.length && pairUp(left, right, comparison);
}

function sameItems(truth: Shape[], answer: Shape[], comparison: Comparison): boolean {
  return (
    truth.every((item) => answer.some((other) => sameItem(item, other, comparison))) &&
    answer.every((item) => truth.some((other) => sameItem(other, item, comparison)))
  );
}

function pairUp(truth: Shape[], answer: Shape[], comparison: Comparison): boolean {
  const free = [...answer];
  return truth.every((item) => {
    const at = free.findIndex((other) => sameItem(item, other, comparison));
    if (at >= 0) free.splice(at, 1);
    return at >= 0;
  });
}

type Collection = Extract<Shape, { kind: "set" | "list" | "union" }>;

function hasItems(shape: Shape): shape is Collection {
  return shape.kind === "set" || shape.kind === "list" || shape.kind === "union";
}

/** An item that can't be compared is not the one looked for; another may be. */
function sameItem(truth: Shape, answer: Shape, comparison: Comparison): boolean {
  try {
    return equalShapes(truth, answer, comparison);
  } catch (error) {
    if (error instanceof NotComputable) return false;
    throw error;
  }
}
