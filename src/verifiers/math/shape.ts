import { NotComputable } from "./functions.ts";
import { matrixTextOf } from "./matrix-text.ts";
import { namesItsBase, parsePlainNumber } from "./number.ts";
import { splitTop, unwrap } from "./split.ts";
import { splitUnit, type Unit, type Words } from "./unit.ts";

/** What kind of thing a normalised answer is. Its leaves are texts, still to be read as numbers or expressions. */
export type Shape =
  | { kind: "expression"; text: string; unit: Unit | null }
  | { kind: "words"; text: string }
  | { kind: "relation"; operators: string[]; operands: Shape[] }
  /** Values without a bracket: `1,2` and `\pm 1`. */
  | { kind: "list"; items: Shape[] }
  | { kind: "set"; items: Shape[] }
  /** A tuple or an interval: which of them, only the question tells. */
  | { kind: "tuple"; open: string; close: string; items: Shape[] }
  | { kind: "union"; items: Shape[] }
  /** `delimiters` are `|` for a determinant, `||` for a norm. */
  | { kind: "matrix"; delimiters: string; worked: boolean; rows: Shape[][] };

const MAX_DEPTH = 8;
const MAX_ITEMS = 64;

const COMMA = new Set([",", ";"]);
const SEMICOLON = new Set([";"]);

/** In `p=5,q=2;p=7,q=2` semicolons part what commas belong to. */
function separatorsOf(text: string): Set<string>[] {
  const grouped = (part: string) => part.includes(",") && part.split("=").length > 2;
  return text.includes(";") && text.split(";").some(grouped) ? [SEMICOLON, COMMA] : [COMMA];
}

const UNION = new Set(["\\cup"]);
const RELATIONS = new Set(["=", "<", ">", "\\le", "\\ge", "\\ne", "\\in", "\\approx", "\\equiv"]);

/** @throws NotComputable where brackets nest deeper, or a list is longer, than any answer's. */
export function shapeOf(raw: string, words: Words, depth = 0): Shape {
  if (depth > MAX_DEPTH) throw new NotComputable("its brackets nest too deeply");
  const text = unwrap(raw, "{", "}") ?? raw;
  if (parsePlainNumber(text)) return { kind: "expression", text, unit: null };
  const below = (part: string) => shapeOf(part, words, depth + 1);

  for (const separator of separatorsOf(text)) {
    const listed = bounded(splitTop(text, (token) => separator.has(token)).parts);
    if (listed.length > 1) return list(listed.filter((part) => part !== "").map(below));
  }
  const member = splitTop(text, (token) => token === "\\in");
  if (member.parts.length === 2) return relation(member.parts, member.separators, below);
  const joined = bounded(splitTop(text, (token) => UNION.has(token)).parts);
  if (joined.length > 1) return { kind: "union", items: joined.map(below) };
  const related = splitTop(text, (token) => RELATIONS.has(token));
  if (related.separators.length > 0)
    return relation(bounded(related.parts), related.separators, below);
  return (
    setOf(text, below) ??
    groupOf(text, below) ??
    matrixOf(text, below) ??
    eitherSign(text, below) ??
    leaf(text, words)
  );
}

function bounded<T>(parts: T[]): T[] {
  if (parts.length > MAX_ITEMS) throw new NotComputable("it has too many parts");
  return parts;
}

/** A list in a list (`1,\pm 2`) is one list, unless it is one of assignments. */
function list(items: Shape[]): Shape {
  const flat = items.flatMap((item) =>
    item.kind === "list" && !item.items.some(({ kind }) => kind === "relation")
      ? item.items
      : [item],
  );
  const [only] = flat;
  return flat.length === 1 && only !== undefined ? only : { kind: "list", items: flat };
}

type Below = (part: string) => Shape;

/** A set of relations' operands; `x\in S` is told by its right side like an equation. */
function relation(parts: string[], operators: string[], below: Below): Shape {
  if (parts.some((part) => part === "")) {
    const [only, ...others] = parts.filter((part) => part !== "");
    if (only !== undefined && others.length === 0 && operators[0] === "=") return below(only);
    throw new NotComputable("a side of a relation is missing");
  }
  return { kind: "relation", operators, operands: parts.map(below) };
}

function setOf(text: string, below: Below): Shape | null {
  const inside = unwrap(text, "\\{", "\\}");
  if (inside === null) return null;
  const builder = splitTop(inside, (token) => token === "|" || token === "\\mid" || token === ":");
  const [variable = "", condition] = builder.parts;
  if (builder.parts.length === 2 && condition !== undefined) {
    const whole = /^[a-zA-Z](?:\\in ?\\mathbb\{R\})?$/.test(variable);
    if (!whole) throw new NotComputable("the domain of its set is unread");
    return below(condition);
  }
  const content = below(inside);
  if (content.kind === "list") return { kind: "set", items: content.items };
  return { kind: "set", items: [content] };
}

const PAIRS: [open: string, close: string][] = [
  ["(", ")"],
  ["[", "]"],
  ["(", "]"],
  ["[", ")"],
  ["\\langle", "\\rangle"],
];

function groupOf(text: string, below: Below): Shape | null {
  for (const [open, close] of PAIRS) {
    const inside = unwrap(text, open, close);
    if (inside === null) continue;
    const parts = bounded(splitTop(inside, (token) => COMMA.has(token)).parts);
    const items = parts.map(below);
    if (items.length > 1) return { kind: "tuple", open, close, items };
    if (open === "(" && items[0] !== undefined) return items[0];
  }
  return null;
}

function matrixOf(text: string, below: Below): Shape | null {
  if (!text.includes("\\begin")) return null;
  const read = matrixTextOf(unwrap(text, "(", ")") ?? unwrap(text, "[", "]") ?? text);
  if (read === null) return null;
  const rows = bounded(read.rows.map((row) => bounded(row).map(below)));
  return { kind: "matrix", delimiters: read.delimiters, worked: read.worked, rows };
}

/** `3\pm\sqrt{2}` is two values; signs in one expression change together, `\mp` the other way. */
function eitherSign(text: string, below: Below): Shape | null {
  if (!/\\(?:pm|mp)(?![a-zA-Z])/.test(text)) return null;
  const withSigns = (plus: string, minus: string) =>
    text.replace(/\\pm(?![a-zA-Z]) ?/g, plus).replace(/\\mp(?![a-zA-Z]) ?/g, minus);
  return list([below(withSigns("+", "-")), below(withSigns("-", "+"))]);
}

function leaf(text: string, words: Words): Shape {
  if (namesItsBase(text)) return { kind: "expression", text, unit: null };
  const { body, unit } = splitUnit(text, words);
  const word = /^(?:[a-zA-Z]{4,}|[a-z]{2,3}|[A-Z][a-z]+)$/.test(body) ? body : null;
  if (body.includes("\\text{") || (word !== null && !isProduct(word))) {
    return { kind: "words", text: wordsOf(text) };
  }
  return { kind: "expression", text: body, unit };
}

/** Two or three letters may be a product of variables (`xy`, `abc`) or a word (`yes`, `no`, `odd`). */
function isProduct(word: string): boolean {
  return word.length <= 3 && !["yes", "no", "odd", "all"].includes(word.toLowerCase());
}

/** Words are compared without case, `\text` and the mark at their end. */
function wordsOf(text: string): string {
  return text
    .replace(/\\text\{([^{}]*)\}/g, " $1 ")
    .replace(/[\s.!]+$/, "")
    .replace(/\s+/g, " ")
    .trim()
    .toLowerCase();
}

export function leavesOf(shape: Shape): Extract<Shape, { kind: "expression" }>[] {
  if (shape.kind === "expression") return [shape];
  if (shape.kind === "words") return [];
  if (shape.kind === "relation") return shape.operands.flatMap(leavesOf);
  if (shape.kind === "matrix") return shape.rows.flat().flatMap(leavesOf);
  return shape.items.flatMap(leavesOf);
}
