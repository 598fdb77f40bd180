import { NotComputable } from "./functions.ts";
import { type Comparison, type Leaf, requireComputable } from "./leaf.ts";
import { isName } from "./name.ts";
import type { Shape } from "./shape.ts";

/** For one side alone, apart from what the comparison used up. */
const MAX_STEPS = 2_000;

/** Words of a truth are compared by their spelling, which a sentence or a formula among them leaves open. */
const MAX_WORDS = 5;
const FORMULA = /[\\^_=<>{}+*/]/;

/** Why a shape can't be compared with anything but its own spelling, or null where it can. */
export function obstacleIn(
  shape: Shape | NotComputable,
  comparison: Comparison,
): NotComputable | null {
  if (shape instanceof NotComputable) return shape;
  const own = { ...comparison, budget: { steps: MAX_STEPS } };
  for (const leaf of valuesOf(shape)) {
    try {
      requireComputable(leaf, own);
    } catch (error) {
      if (error instanceof NotComputable) return error;
      throw error;
    }
  }
  return null;
}

/** Why right answers to a row can't be told from wrong ones, or null where they can. */
export function obstacleInTruth(
  shape: Shape | NotComputable,
  comparison: Comparison,
): NotComputable | null {
  const words = shape instanceof NotComputable ? [] : wordsIn(shape);
  if (words.some((text) => FORMULA.test(text)))
    return new NotComputable("it mixes words and formulas");
  if (words.some((text) => text.split(" ").length > MAX_WORDS))
    return new NotComputable("it is a sentence");
  return obstacleIn(shape, comparison);
}

function partsOf(shape: Shape): Shape[] {
  if (shape.kind === "relation") return shape.operands;
  if (shape.kind === "matrix") return shape.rows.flat();
  return "items" in shape ? shape.items : [];
}

/** The leaves of a shape but for names, which need no value: `\angle A` in `\angle A=5`. */
function valuesOf(shape: Shape): Leaf[] {
  if (shape.kind === "expression") return [shape];
  const parts = partsOf(shape);
  const values = shape.kind === "relation" ? parts.filter((part) => !isName(part)) : parts;
  return values.flatMap(valuesOf);
}

function wordsIn(shape: Shape): string[] {
  return shape.kind === "words" ? [shape.text] : partsOf(shape).flatMap(wordsIn);
}
