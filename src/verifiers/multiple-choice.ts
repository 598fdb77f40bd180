import type { RE2JS } from "re2js";
import { afterThinking } from "./after-thinking.ts";
import { lastBoxed } from "./boxed.ts";
import {
  type Choice,
  goesOn,
  type Option,
  optionWithin,
  plainText,
  readChoice,
} from "./choice-answer.ts";
import type { Verdict } from "./verdict.ts";

export const GRADING_MODES = [
  "strict_single_letter_boxed",
  "lenient_boxed",
  "lenient_answer_colon",
  "lenient_answer_colon_md",
  "gpqa",
] as const;
export type GradingMode = (typeof GRADING_MODES)[number];

export type ChoiceQuestion = {
  options: Option[];
  /** A letter of `options`. */
  expected: string;
  mode: GradingMode;
  /** Win over `mode` where they match: the first group in the last match of the first that does is the answer. */
  outputRegexes: RE2JS[];
};

/** Of RE2, which takes linear time for a match; these bound how much one grade adds up to. */
const MAX_REGEX_CHARS = 10_000;
const MAX_MATCHES = 200;
/** What is read of an answer, and of a box: a choice and its reason. Units: characters. */
const MAX_ANSWER = 2000;
/** The last of them are read. */
const MAX_ANSWERS = 200;

/** Grades as NeMo Gym's `mcqa` and `gpqa_diamond` do, by the mode that the row names; two options are no choice. */
export function gradeChoice(question: ChoiceQuestion, message: string | null): Verdict {
  const said = message === null ? null : chosen(question, afterThinking(message));
  if (said === "several") {
    return { reward: 0, rule: "several_choices", reason: "More than one option was chosen." };
  }
  if (said === null) {
    return { reward: 0, rule: "no_choice", reason: "No option was chosen in the form asked for." };
  }
  return said.letter === question.expected
    ? { reward: 1, rule: "right_choice", reason: `${said.letter} is the expected option.` }
    : { reward: 0, rule: "wrong_choice", reason: `${said.letter} is not the expected option.` };
}

function chosen(question: ChoiceQuestion, text: string): Choice {
  const { options } = question;
  for (const regex of question.outputRegexes) {
    const matched = byRegex(options, regex, text.slice(-MAX_REGEX_CHARS));
    if (matched !== null) return matched;
  }
  switch (question.mode) {
    case "strict_single_letter_boxed":
      return boxed(options, text, true);
    case "lenient_boxed":
      return boxed(options, text, false);
    case "lenient_answer_colon":
      return agreed(
        answersIn(text)
          .slice(-MAX_ANSWERS)
          .map((answer) => readChoice(answer, options)),
      );
    case "lenient_answer_colon_md":
      return last(answersIn(text), options);
    case "gpqa":
      return boxed(options, text, true) ?? last(answersIn(text), options);
  }
}

/** The last box, unless another option stands right before or behind it: `\boxed{A} or \boxed{B}`. */
function boxed(options: readonly Option[], text: string, letterOnly: boolean): Choice {
  const content = lastBoxed(text)?.slice(0, MAX_ANSWER);
  if (content === undefined) return null;
  const read = readChoice(content, options, letterOnly);
  const choice = read ?? (letterOnly ? null : optionWithin(content, options));
  if (choice === null || choice === "several") return choice;
  const at = Math.max(text.lastIndexOf("\\boxed"), text.lastIndexOf("\\fbox"));
  const before = lastBoxed(besides(text.slice(Math.max(0, at - MAX_ANSWER), at)));
  const other = before === null ? null : readChoice(before, options);
  if (other === "several" || (other !== null && other.letter !== choice.letter)) return "several";
  const behind = text.slice(at).indexOf(content) + content.length;
  const line = text.slice(at + behind, at + behind + 100).replace(/^[\s}$.)\\\]]+/, "");
  return goesOn(line, choice.letter, options) ? "several" : choice;
}

/** The end of a text where it is a box and a sign or word that joins it with the next. */
function besides(text: string): string {
  const end = text.replace(
    /[\s$*\\([]*(?:[,;/&+]\s*)?(?:(?<![a-z])(?:and\/or|and|or|or maybe))?[\s$*\\([]*$/i,
    "",
  );
  const start = end.lastIndexOf("\\boxed");
  return /^\\boxed\s*\{.*\}[$)\].\\]*$/s.test(end.slice(start)) ? end.slice(start) : "";
}

/** Where the form asks for one answer, two that differ are none. */
function agreed(choices: Choice[]): Choice {
  const letters = new Set(choices.flatMap((choice) => (choice === null ? [] : [letterOf(choice)])));
  if (letters.size > 1) return "several";
  return choices.find((choice) => choice !== null) ?? null;
}

function letterOf(choice: NonNullable<Choice>): string {
  return choice === "several" ? choice : choice.letter;
}

function last(answers: string[], options: readonly Option[]): Choice {
  const answer = answers.at(-1);
  return answer === undefined ? null : readChoice(answer, options);
}

/**
 * What follows `Answer:` in each line, or in the next one where that line ends there; a heading needs no colon. A next
 * line that goes on with `or` belongs to it.
 */
function answersIn(text: string): string[] {
  const lines = text.split(/\r\n|[\n\r\u2028\u2029]/);
  return lines.flatMap((line, index) => {
    // Not of the line in lower case: that can be longer than the line.
    const colon = [...line.matchAll(/answer(?:\s+is)?[\s*_`]{0,9}[:：]/gi)].at(-1);
    const isHeading = colon === undefined && HEADING.test(line.slice(0, 200));
    if (colon === undefined && !isHeading) return [];
    const from = colon === undefined ? line.length : colon.index + colon[0].length;
    const said = line.slice(from, from + MAX_ANSWER);
    const [first = "", second = ""] = filledLines(lines, index + 1);
    if (plainText(said) !== "") return [joined(said, first)];
    return first === "" || /answer/i.test(first)
      ? []
      : [joined(first.slice(0, MAX_ANSWER), second)];
  });
}

const HEADING = /^\s*(?:#+|\*\*|__)[^:]*answer[\s*_`#]*$/i;

/** The next two lines that are not blank, among the next few. */
function filledLines(lines: readonly string[], from: number): string[] {
  return lines.slice(from, from + 4).filter((line) => plainText(line.slice(0, MAX_ANSWER)) !== "");
}

function joined(answer: string, next: string): string {
  return /^[\s*_(]*(?:or|and|and\/or|but|however|although|alternatively|maybe|[/&])(?!\p{L})/iu.test(
    next,
  )
    ? `${answer} ${next.slice(0, MAX_ANSWER)}`
    : answer;
}

/** An answer with more matches than are looked at chooses nothing. */
function byRegex(options: readonly Option[], regex: RE2JS, text: string): Choice {
  const matcher = regex.matcher(text);
  let last: string | undefined;
  for (let matches = 0; matcher.find(); matches++) {
    if (matches === MAX_MATCHES) return "several";
    last = (matcher.groupCount() > 0 ? matcher.group(1) : null) ?? matcher.group() ?? undefined;
  }
  return last === undefined ? null : readChoice(last, options);
}
