import { type Expression, equalExpressions, type ParseLatex, proportional } from "./expression.ts";
import { type Form, formOf, isAsWorkedOut, isLeftToAdd } from "./form.ts";
import { NotComputable } from "./functions.ts";
import { type Comparison, expressionOf, type Leaf } from "./leaf.ts";
import { isNameText } from "./name.ts";
import { type PlainNumber, parsePlainNumber } from "./number.ts";
import { formulasIn } from "./question-text.ts";
import { leavesOf, type Shape, shapeOf } from "./shape.ts";
import { normalise } from "./text.ts";
import type { Unit } from "./unit.ts";
import { measureOf } from "./unit-words.ts";

type Relation = Extract<Shape, { kind: "relation" }>;
type Spelled = { text: string; form: Form; folded: string; expression: Expression };

const MAX_STEPS = 20_000;
const NO_WORDS: ReadonlySet<string> = new Set();
/** Measures that a question may ask for without their name. */
const IMPLIED = new Set(["", "year", "unit", "pm", "am"]);
const ANGLES = new Set(["degree", "rad"]);

/**
 * What a problem says, as far as it bears on its answer: a formula that stands in it is no answer to it, unless the
 * truth is spelt the same.
 */
export class Question {
  readonly words: ReadonlySet<string>;
  readonly pair: "point" | "interval" | null;
  readonly namesBase: boolean;
  /** Whether an answer of the truth's value was refused because the question says it already. */
  denied = false;
  #text: string;
  #comparison: Comparison;
  #read: { leaves: Spelled[]; sides: Set<string>; relations: Relation[] } | null = null;

  constructor(text: string, parse: ParseLatex) {
    this.#text = text;
    this.#comparison = {
      parse,
      parsed: new Map(),
      budget: { steps: MAX_STEPS },
      question: null,
      pair: null,
    };
    this.words = new Set(text.toLowerCase().match(/[a-z]{3,}/g) ?? []);
    this.pair = pairOf(text);
    this.namesBase = /\b(?:base|binary|octal|hexadecimal|ternary)\b/i.test(text);
  }

  /** Whether an answer of the truth's value is more than what the question says already. */
  allows(truth: Leaf, answer: Leaf): boolean {
    return this.#noted(this.#isMore(truth, answer));
  }

  allowsRelation(truth: Relation, answer: Relation): boolean {
    return this.#noted(this.#isMoreSolved(truth, answer));
  }

  #noted(allowed: boolean): boolean {
    this.denied ||= !allowed;
    return allowed;
  }

  #isMore(truth: Leaf, answer: Leaf): boolean {
    const [left, right] = [this.#spelled(truth), this.#spelled(answer)];
    if (left === null || right === null || left.form.key === right.form.key) return true;
    if (right.expression.heads.has("Degrees") && !left.expression.heads.has("Degrees"))
      return false;
    const { leaves } = this.#formulas();
    const plain = parsePlainNumber(answer.text) !== null;
    if (!plain && parsePlainNumber(truth.text) && isLeftToAdd(right.form)) return false;
    const copied = leaves.some(
      ({ form, folded }) => form.key === right.form.key || (!plain && folded === right.folded),
    );
    if (copied) return false;
    const asked = leaves.some(
      ({ form, expression }) => form.key !== left.form.key && this.#same(expression, left),
    );
    if (!asked) return true;
    if (parsePlainNumber(truth.text)) return plain && isReduced(answer.text);
    return isAsWorkedOut(left.form, right.form);
  }

  /** Whether a formula stands in the question. */
  shows(leaf: Leaf): boolean {
    const key = this.#spelled(leaf)?.form.key;
    return key !== undefined && this.#formulas().leaves.some(({ form }) => form.key === key);
  }

  #isMoreSolved(truth: Relation, answer: Relation): boolean {
    const [left, right] = [this.#relationKey(truth), this.#relationKey(answer)];
    if (left === null || right === null || left === right) return true;
    const { relations } = this.#formulas();
    if (relations.some((relation) => this.#relationKey(relation) === right)) return false;
    const asked = relations.some(
      (relation) =>
        relation.operators.join() === truth.operators.join() && this.#sameRelation(truth, relation),
    );
    if (!asked) return true;
    const [sides, given] = [truth, answer].map((relation) => this.#sides(relation));
    if (!sides || !given) return true;
    const inOrder = (list: Spelled[]) =>
      sides.every((side, at) => isAsWorkedOut(side.form, (list[at] as Spelled).form));
    const solved =
      sides.every(({ text }) => !isNameText(text)) || given.some(({ text }) => isNameText(text));
    return solved && (inOrder(given) || inOrder([...given].reverse()));
  }

  /** Whether a relation stands in the question, so that it is given and not asked for. */
  states(relation: Relation): boolean {
    const key = this.#relationKey(relation);
    return (
      key !== null && this.#formulas().relations.some((other) => this.#relationKey(other) === key)
    );
  }

  /** Whether the value of a formula is asked for: it stands by itself, and is no side of an equation. */
  asksFor(side: Leaf, variables: number): boolean {
    const spelled = this.#spelled(side);
    if (spelled === null) return false;
    const { leaves, sides } = this.#formulas();
    if (sides.has(spelled.form.key)) return false;
    return variables >= 2 || leaves.some(({ form }) => form.key === spelled.form.key);
  }

  /** `50\%` is fifty where percent are asked for, and a half where they are not. */
  confusesPercent(truth: PlainNumber, answer: PlainNumber): boolean {
    if (truth.percent || !answer.percent || /%|percent/i.test(this.#text)) return false;
    return answer.value.n * truth.value.d === truth.value.n * answer.value.d;
  }

  /**
   * Whether a unit of a truth without one is one that is asked for, where the question says which; else one that it speaks
   * of. An angle is in radians if its truth has a pi, unless the question says otherwise.
   */
  allowsUnit({ measure }: Unit, truth: string): boolean {
    const names = measure.split(/[ /]/).map((name) => name.replace(/\^.*/, ""));
    if (ANGLES.has(measure)) return truth === "0" || measure === this.#angleOf(truth);
    if (names.every((name) => IMPLIED.has(name))) return true;
    const asked = askedMeasures(this.#text);
    const allowed = asked.size > 0 ? asked : measuresIn(this.#text);
    return names.every((name) => allowed.has(name) || IMPLIED.has(name));
  }

  #angleOf(truth: string): "degree" | "rad" {
    const degrees = /degree|\\circ|°/i.test(this.#text);
    const radians = /radian/i.test(this.#text);
    return (degrees === radians ? truth.includes("\\pi") : radians) ? "rad" : "degree";
  }

  #formulas() {
    if (this.#read) return this.#read;
    this.#read = { leaves: [], sides: new Set(), relations: [] };
    for (const formula of formulasIn(this.#text)) {
      const shape = computed(() => shapeOf(normalise(formula), NO_WORDS));
      if (shape) this.#collect(shape);
    }
    return this.#read;
  }

  #collect(shape: Shape): void {
    const read = this.#formulas();
    for (const relation of relationsOf(shape)) {
      read.relations.push(relation);
      for (const side of relation.operands.flatMap(leavesOf)) {
        const spelled = this.#spelled(side);
        if (spelled) read.sides.add(spelled.form.key);
      }
    }
    for (const leaf of leavesOf(shape)) {
      const spelled = this.#spelled(leaf);
      if (spelled) read.leaves.push(spelled);
    }
  }

  #spelled({ text }: Leaf): Spelled | null {
    const expression = computed(() => expressionOf(text, this.#comparison));
    if (expression === null) return null;
    return {
      text,
      form: formOf(expression.tree),
      folded: formOf(expression.tree, true).key,
      expression,
    };
  }

  #same(formula: Expression, truth: Spelled): boolean {
    return (
      computed(() => equalExpressions(formula, truth.expression, this.#comparison.budget)) === true
    );
  }

  #sides({ operands }: Relation): Spelled[] | null {
    const sides = operands.map((side) => (side.kind === "expression" ? this.#spelled(side) : null));
    return sides.every((side) => side !== null) ? sides : null;
  }

  #relationKey(relation: Relation): string | null {
    const keys = relation.operands.flatMap((side) =>
      side.kind === "expression" ? (this.#spelled(side)?.form.key ?? side.text) : [],
    );
    if (keys.length < relation.operands.length) return null;
    const flipped = relation.operators.map((operator) => FLIPPED[operator] ?? operator).reverse();
    const forward = `${relation.operators.join()} ${keys.join(" | ")}`;
    const backward = `${flipped.join()} ${[...keys].reverse().join(" | ")}`;
    return forward < backward ? forward : backward;
  }

  #sameRelation(truth: Relation, other: Relation): boolean {
    const [left, right] = [this.#sides(truth), this.#sides(other)];
    if (left?.length !== 2 || right?.length !== 2) return false;
    const difference = ([a, b]: Spelled[]) =>
      expressionOf(`(${a?.text})-(${b?.text})`, this.#comparison);
    const { budget } = this.#comparison;
    return (
      computed(() => proportional(difference(left), difference(right), false, budget)) === true
    );
  }
}

const FLIPPED: Record<string, string> = { ">": "<", "<": ">", "\\le": "\\ge", "\\ge": "\\le" };

function relationsOf(shape: Shape): Relation[] {
  if (shape.kind === "relation") return [shape];
  return shape.kind === "list" ? shape.items.flatMap(relationsOf) : [];
}

function computed<T>(action: () => T): T | null {
  try {
    return action();
  } catch (error) {
    if (error instanceof NotComputable) return null;
    throw error;
  }
}

function isReduced(text: string): boolean {
  const match = /(\d+)\}?(?:\{|\/)(\d+)/.exec(text);
  if (!match) return true;
  let [a, b] = [BigInt(match[1] ?? "0"), BigInt(match[2] ?? "1")];
  while (b !== 0n) [a, b] = [b, a % b];
  return a === 1n;
}

const POINT =
  /\b(?:points?|coordinates?|ordered (?:pair|triple)s?|vectors?|intersect\w*|vertex|vertices|cent(?:er|re)|midpoint|pairs?|focus|foci)\b/i;
const INTERVAL =
  /\b(?:intervals?|inequalit\w*|domain|range|solution set)\b|\\l?eq?(?![a-z])|\\ge?q?(?![a-z])|[<>≤≥]/i;

function pairOf(text: string): "point" | "interval" | null {
  const [point, interval] = [POINT.test(text), INTERVAL.test(text)];
  return point === interval ? null : point ? "point" : "interval";
}

const ASKED =
  /\b(?:how (?:many|much)|number of|in|into|nearest|express\w* in)\s+(?:(?:square|cubic|sq\.?|more|total|full|whole|the|a)\s+)?([a-z]+)(?:\s*(?:per|\/)\s*(?:an?\s+)?([a-z]+))?/gi;

function askedMeasures(text: string): Set<string> {
  const end = text.slice(
    Math.max(text.lastIndexOf(".", text.length - 3), text.lastIndexOf("!"), 0),
  );
  return new Set(
    [...end.matchAll(ASKED)].flatMap(([, ...words]) =>
      words.flatMap((word = "") => measureOf(word.toLowerCase())[0]?.split("/") ?? []),
    ),
  );
}

function measuresIn(text: string): Set<string> {
  const found = new Set(
    (text.toLowerCase().match(/[a-z]+/g) ?? []).flatMap(
      (word) => measureOf(word)[0]?.split("/") ?? [],
    ),
  );
  if (/\\\$|\$\s*\d/.test(text)) found.add("dollar");
  return found;
}
