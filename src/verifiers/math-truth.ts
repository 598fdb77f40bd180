import { lastBoxed } from "./boxed.ts";
import { boxedAnswer } from "./boxed-answer.ts";
import { latexParser } from "./math/expression.ts";
import { NotComputable } from "./math/functions.ts";
import { parsePlainNumber } from "./math/number.ts";
import { obstacleInTruth } from "./math/obstacle.ts";
import { shapeOf } from "./math/shape.ts";
import { MAX_ANSWER_CHARS, normalise } from "./math/text.ts";
import { EVERY_WORD } from "./math/unit-words.ts";

/** What to do about a truth that can't be compared. */
export const UNREADABLE_TRUTH =
  "write the truth as a value, an expression or a few words, or let a judge grade the row";

/** A truth without the `\boxed{}` that it may be within. */
export function acceptedText(truth: string): string {
  const found = lastBoxed(truth) === null ? null : boxedAnswer(truth);
  return found && "text" in found ? found.text : truth;
}

/**
 * Why right answers can't be told from wrong ones by a truth, as the rest of a sentence about it, or null where they
 * can: the truth is empty, a sentence, or beyond the comparer (an integral, a function by cases).
 */
export function unreadableTruth(truth: string): string | null {
  if (truth.length > MAX_ANSWER_CHARS)
    return `has ${truth.length} characters; at most ${MAX_ANSWER_CHARS} are compared`;
  const text = normalise(acceptedText(truth));
  if (text === "") return "is empty";
  if (parsePlainNumber(text)) return null;
  const obstacle = obstacleInTruth(shaped(text), {
    parse: (latex) => latexParser()(latex),
    parsed: new Map(),
    budget: { steps: 0 },
    question: null,
    pair: null,
  });
  return obstacle && `can't be compared with an answer: ${obstacle.message}`;
}

function shaped(text: string) {
  try {
    return shapeOf(text, new Set([EVERY_WORD]));
  } catch (error) {
    if (error instanceof NotComputable) return error;
    throw error;
  }
}
