import { ServiceError } from "../errors.ts";
import { afterThinking } from "./after-thinking.ts";
import { boxedAnswer } from "./boxed-answer.ts";
import { choiceOf } from "./math/choice.ts";
import { equalShapes } from "./math/compare.ts";
import { latexParser } from "./math/expression.ts";
import { NotComputable } from "./math/functions.ts";
import type { Comparison } from "./math/leaf.ts";
import { equalNumbers, parsePlainNumber } from "./math/number.ts";
import { obstacleIn, obstacleInTruth } from "./math/obstacle.ts";
import { Question } from "./math/question.ts";
import { type Shape, shapeOf } from "./math/shape.ts";
import { MAX_ANSWER_CHARS, normalise } from "./math/text.ts";
import type { Words } from "./math/unit.ts";
import { EVERY_WORD } from "./math/unit-words.ts";
import { acceptedText, UNREADABLE_TRUTH } from "./math-truth.ts";
import type { Verdict } from "./verdict.ts";

/** Far above what an honest comparison takes, and some tens of milliseconds at most. */
const MAX_STEPS = 20_000;

const SHOWN_CHARS = 80;

/**
 * Grades the text that the model finished with: the boxes that it ends with, behind its reasoning, against the accepted
 * truths, any of which counts. Reward 1 or 0; equal inputs get equal verdicts, since work is counted in
 * steps and not in time. Everything in the box is read, or the answer earns nothing.
 *
 * Rules: `no_answer`, `no_boxed_answer`, `unclear_box`, `answer_too_long`, `equal_string`, `equal_number`,
 * `equal_choice`, `equal_` and the truth's kind (`expression`, `words`, `relation`, `list`, `set`,
 * `tuple`, `union`, `matrix`), `not_equal`, `copied_question`, `unparsable_answer`, `unparsable_truth`.
 *
 * An answer that can't be compared earns nothing. `unparsable_truth` says that only spellings were compared, because
 * the row's own truth is beyond the comparer (an integral, a sentence of prose): the answer may be right, so that this
 * rule is no verdict on it. `gradeMathAnswer` throws in its place.
 *
 * @param truths at least one text, each bare or within its own `\boxed{}`
 * @param problem the text that the model was asked: what stands in it is no answer to it, unless the truth is spelt so
 */
export async function compareMathAnswer(
  answer: string | null,
  truths: string[],
  problem: string | null = null,
): Promise<Verdict> {
  if (truths.length === 0) throw new Error("a math answer is graded against at least one truth");
  if (answer === null || answer.trim() === "") {
    return verdict(0, "no_answer", "The rollout ended without an answer.");
  }
  const found = boxedAnswer(afterThinking(answer));
  if (found === null) {
    return verdict(0, "no_boxed_answer", "The answer holds no complete \\boxed{}.");
  }
  if ("refused" in found)
    return verdict(0, "unclear_box", `The answer counts for nothing: ${found.refused}.`);
  const boxed = found.text;
  const accepted = truths.map(acceptedText);
  if (accepted.some((truth) => truth.trim() === boxed)) return matched("equal_string", boxed);
  if (boxed.length > MAX_ANSWER_CHARS) {
    const reason = `The boxed answer has ${boxed.length} characters; at most ${MAX_ANSWER_CHARS} are compared.`;
    return verdict(0, "answer_too_long", reason);
  }
  const given = normalise(boxed);
  const wanted = accepted.map((truth) => normalise(truth));
  for (const [at, truth] of wanted.entries()) {
    const rule = equalWithoutParser(truth, given, problem !== null);
    if (rule !== null || isSpeltAlike(accepted[at] as string, boxed))
      return matched(rule ?? "equal_string", boxed);
  }
  return compareShapes(wanted, given, boxed, problem);
}

/**
 * As `compareMathAnswer`, where nothing else can tell whether the answer is right.
 *
 * @throws ServiceError `truth_unreadable` where a truth can't be compared with the answer
 */
export async function gradeMathAnswer(
  answer: string | null,
  truths: string[],
  problem: string | null = null,
): Promise<Verdict> {
  const found = await compareMathAnswer(answer, truths, problem);
  if (found.rule !== "unparsable_truth") return found;
  throw new ServiceError("truth_unreadable", found.reason, { mend: UNREADABLE_TRUTH });
}

/**
 * Whether the answer is a truth with blanks between its items, written without them (`100,200` for `100, 200`), or has a
 * decimal comma for its point.
 */
function isSpeltAlike(truth: string, answer: string): boolean {
  const spaced = /,\s/.test(truth) && !/,\s/.test(answer);
  if (spaced && truth.replace(/\s/g, "") === answer.replace(/\s/g, "")) return true;
  const [a, b] = [truth, answer].map((text) => text.trim().replace(DECIMAL_COMMA, "$1$3.$2$4"));
  return a === b && (a === truth.trim() || b === answer);
}

/** `1,22` and `0,111` group no thousands. With one digit behind the comma it is rather a list. */
const DECIMAL_COMMA = /^(-?\d+),(\d{2}|\d{4,})$|^(-?0),(\d{2,})$/;

/** The rules that need no parser, which decide most grades: the same spelling, number or choice. */
function equalWithoutParser(truth: string, answer: string, asked: boolean): string | null {
  if (truth === answer && truth !== "") return "equal_string";
  const [left, right] = [parsePlainNumber(truth), parsePlainNumber(answer)];
  if (!asked && left && right && equalNumbers(left, right)) return "equal_number";
  const choice = choiceOf(answer);
  if (choice === null) return null;
  if (choice.letter === choiceOf(truth)?.letter) return "equal_choice";
  return choice.content !== "" && choice.content === truth ? "equal_choice" : null;
}

function compareShapes(
  truths: string[],
  answer: string,
  shown: string,
  problem: string | null,
): Verdict {
  const parse = latexParser();
  const question = problem === null ? null : new Question(problem, parse);
  const comparison: Comparison = {
    parse,
    parsed: new Map(),
    budget: { steps: MAX_STEPS },
    question,
    pair: question?.pair ?? null,
  };
  const words: Words = new Set([...(question?.words ?? []), ...truths.flatMap(wordsOf)]);
  const given = attempt(() => shapeOf(answer, words));
  let unread: NotComputable | null = null;
  for (const text of truths) {
    const truth = attempt(() => shapeOf(text, new Set([...words, EVERY_WORD])));
    const outcome = attempt(() => {
      if (truth instanceof NotComputable) throw truth;
      if (given instanceof NotComputable) throw given;
      return equalShapes(truth, given, comparison);
    });
    if (outcome === true && "kind" in truth) return matched(ruleOf(truth, answer), shown);
    unread ??= obstacleInTruth(truth, comparison);
  }
  if (unread !== null) {
    const reason = `The answer ${quoted(shown)} is spelt differently from the truth, which`;
    return verdict(0, "unparsable_truth", `${reason} can't be compared: ${unread.message}.`);
  }
  if (question?.denied) {
    const reason = `The answer ${quoted(shown)} is a formula of the problem that is not worked out.`;
    return verdict(0, "copied_question", reason);
  }
  const unclear = obstacleIn(given, comparison);
  if (unclear !== null) {
    const reason = `The answer ${quoted(shown)} can't be compared: ${unclear.message}.`;
    return verdict(0, "unparsable_answer", reason);
  }
  const wanted = quoted(truths.join(" or "));
  return verdict(0, "not_equal", `The answer ${quoted(shown)} is not ${wanted}.`);
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/(?<!\\)[a-z]{3,}/g) ?? [];
}

function ruleOf(truth: Shape, answer: string): string {
  const numbers =
    truth.kind === "expression" && parsePlainNumber(truth.text) && parsePlainNumber(answer);
  return numbers ? "equal_number" : `equal_${truth.kind}`;
}

function attempt<T>(action: () => T): T | NotComputable {
  try {
    return action();
  } catch (error) {
    if (error instanceof NotComputable) return error;
    throw error;
  }
}

function matched(rule: string, answer: string): Verdict {
  return verdict(1, rule, `The answer ${quoted(answer)} is the truth.`);
}

function quoted(text: string): string {
  return `"${text.length > SHOWN_CHARS ? `${text.slice(0, SHOWN_CHARS)}…` : text}"`;
}

function verdict(reward: 0 | 1, rule: string, reason: string): Verdict {
  return { reward, rule, reason };
}
