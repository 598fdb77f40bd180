import { equalShapes, inOrder, pairedUp } from "./compare.ts";
import { realConstant } from "./expression.ts";
import { type Comparison, expressionOf, tellsValue } from "./leaf.ts";
import { isName, nameOf, sameUnknown } from "./name.ts";
import { decimalPlaces } from "./number.ts";
import type { Shape } from "./shape.ts";

type Relation = Extract<Shape, { kind: "relation" }>;
type Assigned = { name: string; value: Shape };

const TELLING = new Set(["=", "\\in", "\\approx", "\\equiv"]);

export function isEquation(shape: Relation): boolean {
  return shape.operators.every((operator) => TELLING.has(operator));
}

/**
 * The values that an equation tells of its left side, any of which it may be read as: one, or for `exact \approx
 * decimal` both. None where the left side is no name, or where two sides differ.
 */
export function toldBy(relation: Relation, comparison: Comparison): Shape[] {
  const sides = [...relation.operands];
  while (sides.length > 1 && tells(sides[0] as Shape, comparison)) sides.shift();
  for (let at = 1; at < sides.length; at++) {
    const [before, side] = [sides[at - 1] as Shape, sides[at] as Shape];
    if (before.kind !== side.kind || before.kind === "tuple") return [];
    if (!agree(before, side, comparison)) return [];
  }
  const last = sides.at(-1) as Shape;
  const exact = sides.at(-2);
  return exact === undefined ? [last] : [exact, withUnitOf(exact, last)];
}

function withUnitOf(first: Shape, last: Shape): Shape {
  if (first.kind !== "expression" || last.kind !== "expression") return last;
  return { ...last, unit: last.unit ?? first.unit };
}

function tells(side: Shape, comparison: Comparison): boolean {
  return isName(side) || (side.kind === "expression" && tellsValue(side, comparison));
}

function agree(exact: Shape, next: Shape, comparison: Comparison): boolean {
  if (equalShapes(exact, next, comparison)) return true;
  if (exact.kind !== "expression" || next.kind !== "expression") return false;
  const places = decimalPlaces(next.text);
  if (places === null) return false;
  const [a, b] = [exact, next].map(({ text }) =>
    realConstant(expressionOf(text, comparison), comparison.budget),
  );
  if (a == null || b == null) return false;
  const scale = 10 ** places;
  // Rounded, or cut off.
  return Math.abs(a - b) * scale <= 0.5001 || Math.abs(Math.trunc(a * scale) - b * scale) < 1e-6;
}

/** `(x,y)=(1,2)` as `x=1,y=2`, and `x=1,2` as `x=1,x=2`. */
export function withNames(shape: Shape): Shape {
  if (shape.kind === "relation") return pairsOf(shape) ?? shape;
  if (shape.kind !== "list") return shape;
  const [first] = shape.items;
  const named =
    first?.kind === "relation" && first.operators.join() === "=" && isName(first.operands[0]);
  if (!named || shape.items.slice(1).some(({ kind }) => kind === "relation")) return shape;
  const [name] = first.operands as [Shape];
  const items = shape.items.map(
    (item): Shape =>
      item === first ? item : { kind: "relation", operators: ["="], operands: [name, item] },
  );
  return { kind: "list", items };
}

function pairsOf({ operators, operands }: Relation): Shape | null {
  const [names, values] = operands;
  if (operators.join() !== "=" || names?.kind !== "tuple" || values?.kind !== "tuple") return null;
  if (names.items.length !== values.items.length || !names.items.every(isName)) return null;
  const items = names.items.map((name, at): Shape => {
    return { kind: "relation", operators: ["="], operands: [name, values.items[at] as Shape] };
  });
  return { kind: "list", items };
}

/** The assignments of a list that holds nothing else, or null. */
function assignmentsOf(shape: Shape): Assigned[] | null {
  if ((shape.kind !== "list" && shape.kind !== "set") || shape.items.length < 2) return null;
  const found = shape.items.flatMap((item): Assigned[] => {
    if (item.kind !== "relation" || !isEquation(item) || !isName(item.operands[0])) return [];
    if (item.operands.slice(1).some((side) => item.operands.length > 2 && isName(side))) return [];
    return [{ name: nameOf(item.operands[0]), value: item }];
  });
  return found.length === shape.items.length ? found : null;
}

/** Whether two shapes, one of which lists assignments, say the same of the same names; null where none does. */
export function equalAssignments(
  truth: Shape,
  answer: Shape,
  comparison: Comparison,
): boolean | null {
  const [left, right] = [assignmentsOf(truth), assignmentsOf(answer)];
  if (left === null && right === null) return null;
  if (left !== null && right !== null) return equalNamed(left, right, comparison);
  const named = (left ?? right) as Assigned[];
  const other = left === null ? truth : answer;
  if (!("items" in other) || other.items.length !== named.length || other.kind === "union")
    return false;
  if (other.items.some(({ kind }) => kind === "relation")) return false;
  const values = (list: Assigned[]) =>
    list.map(({ value }) => (value as Relation).operands.at(-1) as Shape);
  if (sameUnknown(named.map(({ name }) => name)) && other.kind !== "tuple") {
    const own = named.map(({ value }) => value);
    return left === null
      ? pairedUp(other.items, own, comparison)
      : pairedUp(own, other.items, comparison);
  }
  if (other.kind === "set" || (other.kind === "tuple" && !isPoint(other, comparison))) return false;
  if (left !== null) return inOrder(values(left), other.items, comparison);
  const sorted = [...named].sort((a, b) => (a.name < b.name ? -1 : 1));
  return inOrder(other.items, values(sorted), comparison);
}

function isPoint(shape: Extract<Shape, { kind: "tuple" }>, { pair }: Comparison): boolean {
  return (
    shape.items.length > 2 || (pair !== "interval" && shape.open !== "[" && shape.close !== "]")
  );
}

function equalNamed(truth: Assigned[], answer: Assigned[], comparison: Comparison): boolean {
  const names = new Set(truth.map(({ name }) => name));
  const unknowns = names.size < truth.length || sameUnknown([...names]);
  const known = answer.every(({ name }) => names.has(name));
  if (unknowns && !known && !sameUnknown(answer.map(({ name }) => name))) return false;
  if (unknowns) {
    const values = (list: Assigned[]) =>
      list.map(({ value }) => (value as Relation).operands.at(-1) as Shape);
    return known && names.size === truth.length
      ? byName(truth, answer, comparison)
      : pairedUp(values(truth), values(answer), comparison);
  }
  return known && byName(truth, answer, comparison);
}

function byName(truth: Assigned[], answer: Assigned[], comparison: Comparison): boolean {
  if (truth.length !== answer.length) return false;
  return truth.every(({ name, value }) => {
    const same = answer.filter((other) => other.name === name);
    return same.length === 1 && same.every((other) => equalShapes(value, other.value, comparison));
  });
}
