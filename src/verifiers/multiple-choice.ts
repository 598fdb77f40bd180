import type { RE2JS } from "re2js";
import { afterThinking } from "./after-thinking.ts";
import { lastBoxed } from "./boxed.ts";
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
  options: { letter: string; text: string }[];
  /** A letter of `options`. */
  expected: string;
  mode: GradingMode;
  /** Wins over `mode`: its first group in its last match is the answer. */
  outputRegex: RE2JS | null;
};

/** Of RE2, which takes linear time for a match; these bound how much one grade adds up to. */
const MAX_REGEX_CHARS = 10_000;
const MAX_MATCHES = 200;

/** Grades as NeMo Gym's `mcqa` and `gpqa_diamond` do, by the mode that the row names. */
export function gradeChoice(question: ChoiceQuestion, message: string | null): Verdict {
  const said = message === null ? null : chosen(question, afterThinking(message));
  if (said === null) {
    return { reward: 0, rule: "no_choice", reason: "No option was chosen in the form asked for." };
  }
  return said === question.expected
    ? { reward: 1, rule: "right_choice", reason: `${said} is the expected option.` }
    : { reward: 0, rule: "wrong_choice", reason: `${said} is not the expected option.` };
}

function chosen(question: ChoiceQuestion, text: string): string | null {
  const { mode, outputRegex } = question;
  if (outputRegex) return byRegex(question, outputRegex, text.slice(-MAX_REGEX_CHARS));
  switch (mode) {
    case "strict_single_letter_boxed":
      return boxedLetter(question, text);
    case "lenient_boxed":
      return boxedLetter(question, text) ?? boxedOption(question, text);
    case "lenient_answer_colon":
      return named(question, answersIn(text)[0]);
    case "lenient_answer_colon_md":
      return named(question, answersIn(withoutMarkdown(text)).at(-1));
    case "gpqa":
      return boxedLetter(question, text) ?? named(question, answersIn(text).at(-1));
  }
}

/** One capital letter, and no other, in the last box. */
function boxedLetter(question: ChoiceQuestion, text: string): string | null {
  const letters = (lastBoxed(text) ?? "").replace(/\\(text|mathrm|mathbf|textbf)\b/g, "");
  const only = letters.match(/^[^A-Za-z]*([A-Z])[^A-Za-z]*$/)?.[1];
  return only !== undefined && isOption(question, only) ? only : null;
}

/** The only option whose text is in the last box. */
function boxedOption({ options }: ChoiceQuestion, text: string): string | null {
  const box = normal(unwrapped(lastBoxed(text) ?? ""));
  const found = options.filter(
    (option) => normal(option.text) !== "" && box.includes(normal(option.text)),
  );
  return found.length === 1 ? (found[0]?.letter ?? null) : null;
}

/** What follows `Answer:`, to the end of each such line. */
function answersIn(text: string): string[] {
  const answers: string[] = [];
  for (const line of text.split("\n")) {
    // Not of the line in lower case: that can be longer than the line.
    const at = [...line.matchAll(/answer/gi)].at(-1)?.index ?? -1;
    const said = at < 0 ? null : line.slice(at + "answer".length).match(/^\s{0,9}:(.+)$/);
    if (said?.[1]?.trim()) answers.push(said[1].trim());
  }
  return answers;
}

function withoutMarkdown(text: string): string {
  return text.replace(/[*_`#]/g, "");
}

/** A letter by itself, perhaps in brackets or with its text behind it, or an option's whole text. */
function named(question: ChoiceQuestion, answer: string | undefined): string | null {
  if (answer === undefined) return null;
  const plain = unwrapped(answer).trim();
  const letter = plain.match(/^[([]?([A-Za-z])[)\]]?\s*([.):,\-–].*)?$/)?.[1]?.toUpperCase();
  if (letter !== undefined && isOption(question, letter)) return letter;
  const same = question.options.filter(({ text }) => normal(text) === normal(plain));
  return same.length === 1 ? (same[0]?.letter ?? null) : null;
}

/** An answer with more matches than are looked at chooses nothing. */
function byRegex(question: ChoiceQuestion, regex: RE2JS, text: string): string | null {
  const matcher = regex.matcher(text);
  let last: string | undefined;
  for (let matches = 0; matcher.find(); matches++) {
    if (matches === MAX_MATCHES) return null;
    last = (matcher.groupCount() > 0 ? matcher.group(1) : null) ?? matcher.group() ?? undefined;
  }
  return named(question, last);
}

function isOption({ options }: ChoiceQuestion, letter: string): boolean {
  return options.some((option) => option.letter === letter);
}

function unwrapped(text: string): string {
  return text
    .replace(/\\(?:text|mathrm|mathbf|textbf|boxed)\{([^{}]*)\}/g, "$1")
    .replace(/[$*]/g, "");
}

function normal(text: string): string {
  return text.toLowerCase().split(/\s+/).join(" ").trim();
}
