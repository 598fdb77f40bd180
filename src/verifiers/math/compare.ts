import { equalAssignments, isEquation, toldBy, withNames } from "./assignment.ts";
import { NotComputable } from "./functions.ts";
import { type Comparison, equalLeaves } from "./leaf.ts";
import { isName, nameOf } from "./name.ts";
import { equalRelations, intervalsOf } from "./relation.ts";
import type { Shape } from "./shape.ts";

/**
 * Whether the answer is the truth. The two are not alike: the truth's form decides, so an answer
 * `x=5` counts for a truth `5`, but a truth `x^2+y^2=1` does not shrink to `1`.
 * @throws NotComputable where that could not be found out.
 */
export function equalShapes(truth: Shape, answer: Shape, comparison: Comparison): boolean {
  if (otherNames(truth, answer)) return false;
  const [left, right] = [withNames(members(truth)), withNames(members(answer))];
  const assigned = equalAssignments(left, right, comparison);
  if (assigned !== null) return assigned;
  if (left.kind === "relation" && right.kind === "relation") {
    return equalRelations(left, right, comparison);
  }
  if (right.kind === "relation" && comparison.question?.states(right)) return false;
  if (right.kind === "relation" && isEquation(right)) {
    return toldBy(right, comparison).some((value) => equalShapes(left, value, comparison));
  }
  if (left.kind === "relation" && isEquation(left) && tellsOneValue(left)) {
    const told = toldBy(left, comparison);
    // Where the exact value is what the question shows, its decimal is asked for.
    const asked = told.filter(
      (value) => value.kind !== "expression" || !comparison.question?.shows(value),
    );
    return (asked.length > 0 ? asked : told).some((value) => equalShapes(value, right, comparison));
  }
  return equalPlain(left, right, comparison);
}

function equalPlain(left: Shape, right: Shape, comparison: Comparison): boolean {
  if (isRegion(left) || isRegion(right)) return equalRegions(left, right, comparison);
  if (left.kind === "words" || right.kind === "words") return equalWords(left, right);
  if (left.kind === "matrix" || right.kind === "matrix") {
    return equalMatrices(left, right, comparison);
  }
  if (left.kind === "tuple" && right.kind === "tuple") return equalGroups(left, right, comparison);
  if (left.kind === "tuple" || right.kind === "tuple") {
    return equalGroupAndList(left, right, comparison);
  }
  if (left.kind === "expression" && right.kind === "expression")
    return equalLeaves(left, right, comparison);
  return equalCollections(left, right, comparison);
}

/** `x\in[1,2]` says nothing of y. */
function otherNames(truth: Shape, answer: Shape): boolean {
  const names = [truth, answer].map((shape) =>
    shape.kind === "relation" && shape.operators.join() === "\\in" ? nameOf(shape.operands[0]) : "",
  );
  return names.every((name) => name !== "") && names[0] !== names[1];
}

/** A truth tells the value of a name, or an exact value and its decimal. */
function tellsOneValue({ operators, operands }: Extract<Shape, { kind: "relation" }>): boolean {
  return isName(operands[0]) || (operators.join() === "\\approx" && operands.length === 2);
}

/** `x\in[1,2]` is told by its right side whatever it is compared with. */
function members(shape: Shape): Shape {
  const named = shape.kind === "relation" && shape.operators.join() === "\\in";
  return named && isName(shape.operands[0]) ? (shape.operands.at(-1) as Shape) : shape;
}

function isRegion(shape: Shape): boolean {
  if (shape.kind === "expression") return shape.text === "\\mathbb{R}";
  return shape.kind === "relation" || shape.kind === "union";
}

/** `1<x<2` and `(1,2)`, `x>3` and `(3,\infty)`, `x\le 0\text{ or }x>1` and a union. */
function equalRegions(truth: Shape, answer: Shape, comparison: Comparison): boolean {
  if (comparison.pair === "point" && isPointLike(truth, answer)) return false;
  const left = intervalsOf(truth);
  const right = intervalsOf(answer);
  if (left === null || right === null) return equalCollections(truth, answer, comparison);
  return left.length === right.length && sameItems(left, right, comparison);
}

/** A point's coordinates are not the ends of an interval. */
function isPointLike(truth: Shape, answer: Shape): boolean {
  const bare = ({ kind, ...shape }: Shape) =>
    kind === "tuple" && "open" in shape && shape.open === "(" && shape.close === ")";
  return bare(truth) !== bare(answer);
}

function equalWords(truth: Shape, answer: Shape): boolean {
  if (truth.kind !== "words" && truth.kind !== "expression") return false;
  if (answer.kind !== "words" && answer.kind !== "expression") return false;
  return truth.text.toLowerCase() === answer.text.toLowerCase();
}

type Matrix = Extract<Shape, { kind: "matrix" }>;

/** A column or a row is a vector, which may be written as a tuple too, and rows of `[[1,2],[3,4]]` a matrix. */
function equalMatrices(truth: Shape, answer: Shape, comparison: Comparison): boolean {
  const [left, right] = [asMatrix(truth, answer), asMatrix(answer, truth)];
  if (left === null || right === null) {
    const [a, b] = [asVector(truth, comparison), asVector(answer, comparison)];
    return a !== null && b !== null && inOrder(a, b, comparison);
  }
  if (comparison.question && left.worked && !right.worked) return false;
  if (left.rows.length !== right.rows.length || left.delimiters !== right.delimiters) return false;
  return left.rows.every((row, at) => inOrder(row, right.rows[at] as Shape[], comparison));
}

function asMatrix(shape: Shape, other: Shape): Matrix | null {
  if (shape.kind === "matrix") return shape;
  if (shape.kind !== "tuple" || other.kind !== "matrix") return null;
  const rows = shape.items.map((row) => (row.kind === "tuple" ? row.items : null));
  return rows.every((row) => row !== null)
    ? { kind: "matrix", delimiters: "", worked: true, rows }
    : null;
}

function asVector(shape: Shape, { pair }: Comparison): Shape[] | null {
  if (shape.kind === "matrix") {
    if (shape.delimiters !== "") return null;
    const [first] = shape.rows;
    return shape.rows.length === 1 && first
      ? first
      : shape.rows.every((row) => row.length === 1)
        ? shape.rows.flat()
        : null;
  }
  if (shape.kind === "list") return shape.items;
  if (shape.kind !== "tuple") return null;
  const interval =
    pair === "interval" ||
    shape.open !== shape.close.replace(")", "(").replace("\\rangle", "\\langle");
  const unclear =
    shape.items.length === 2 && shape.open !== "\\langle" && (interval || shape.open === "[");
  return unclear || shape.items.some(isInfinite) ? null : shape.items;
}

function isInfinite(shape: Shape): boolean {
  return shape.kind === "expression" && shape.text.includes("\\infty");
}

type Group = Extract<Shape, { kind: "tuple" }>;

/** Two items may be an interval, whose brackets mean something; three or more are a tuple or a vector. */
function equalGroups(truth: Group, answer: Group, comparison: Comparison): boolean {
  const brackets = truth.open === answer.open && truth.close === answer.close;
  const pointed = truth.open === "\\langle" || answer.open === "\\langle";
  if (
    pointed &&
    truth.open !== answer.open &&
    [truth, answer].some((group) => group.items.some(isInfinite))
  )
    return false;
  if (truth.items.length === 2 && !brackets && !pointed) return false;
  return inOrder(truth.items, answer.items, comparison);
}

/** A list without brackets is a tuple when its order is the tuple's. A set has no order to offer. */
function equalGroupAndList(truth: Shape, answer: Shape, comparison: Comparison): boolean {
  const [group, other] = truth.kind === "tuple" ? [truth, answer] : [answer, truth];
  if (group.kind !== "tuple" || other.kind !== "list") return false;
  if (group.items.length === 2 && (group.open !== "(" || group.close !== ")")) return false;
  if (group.items.length === 2 && (comparison.pair === "interval" || group.items.some(isInfinite)))
    return false;
  return truth === group
    ? inOrder(group.items, other.items, comparison)
    : inOrder(other.items, group.items, comparison);
}

export function inOrder(truth: Shape[], answer: Shape[], comparison: Comparison): boolean {
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
  return pairedUp(left, right, comparison);
}

function sameItems(truth: Shape[], answer: Shape[], comparison: Comparison): boolean {
  return (
    truth.every((item) => answer.some((other) => sameItem(item, other, comparison))) &&
    answer.every((item) => truth.some((other) => sameItem(other, item, comparison)))
  );
}

/** One answer for each truth, in any order. A list without an item twice may be told with one twice. */
export function pairedUp(truth: Shape[], answer: Shape[], comparison: Comparison): boolean {
  if (truth.length > answer.length) return false;
  const free = [...answer];
  const found = truth.every((item) => {
    const at = free.findIndex((other) => sameItem(item, other, comparison));
    if (at >= 0) free.splice(at, 1);
    return at >= 0;
  });
  if (!found || free.length === 0) return found;
  const twice = truth.some((item, at) =>
    truth.some((other, place) => place > at && sameItem(item, other, comparison)),
  );
  return (
    !twice &&
    truth.length > 1 &&
    free.every((item) => truth.some((other) => sameItem(other, item, comparison)))
  );
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
