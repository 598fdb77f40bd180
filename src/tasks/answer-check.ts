import { RE2JS } from "re2js";
import { z } from "zod";
import { ServiceError } from "../errors.ts";
import { afterThinking } from "../verifiers/after-thinking.ts";
import { lastBoxed } from "../verifiers/boxed.ts";
import { judgeAnswer } from "../verifiers/judge.ts";
import { gradeMathAnswer } from "../verifiers/math-answer.ts";
import { type ChoiceQuestion, GRADING_MODES, gradeChoice } from "../verifiers/multiple-choice.ts";
import type { Verdict } from "../verifiers/verdict.ts";
import { fromJsonText } from "./from-json-text.ts";
import type { TaskSettings } from "./settings.ts";

const MAX_REGEX_SOURCE = 200;

const text = z.union([z.string(), z.number()]).transform(String);

/** The fields of a row that say which answer is right, by choice or freely. */
export const answerFields = {
  expected_answer: text.nullish(),
  reward_model: z
    .preprocess(fromJsonText, z.looseObject({ ground_truth: text.nullish() }))
    .nullish(),
  /** `[{"A": "one"}, {"B": "two"}]`, `{"A": "one", "B": "two"}`, or the texts alone. */
  options: z
    .preprocess(
      fromJsonText,
      z.union([
        z.array(z.union([z.string(), z.record(z.string(), z.string().nullable())])),
        z.record(z.string(), z.string().nullable()),
      ]),
    )
    .nullish(),
  grading_mode: z.enum(GRADING_MODES).nullish(),
  template_metadata: z
    .looseObject({ output_regex: z.union([z.string(), z.array(z.string()).max(10)]).nullish() })
    .nullish(),
};

type AnswerFields = z.output<z.ZodObject<typeof answerFields>>;

export type AnswerCheck =
  | { kind: "choice"; question: ChoiceQuestion }
  | { kind: "judge"; question: string; reference: string };

/** @throws ServiceError `invalid_field` */
export function answerCheck(row: AnswerFields, question: string, mode: ChoiceQuestion["mode"]) {
  const reference = row.expected_answer ?? row.reward_model?.ground_truth;
  if (!reference) throw missing("instance.reward_model", "reward_model.ground_truth");
  if (!row.options) return { kind: "judge", question, reference } as const;
  const options = lettered(row.options);
  const expected = reference.trim().toUpperCase();
  if (!options.some(({ letter }) => letter === expected)) {
    const letters = options.map(({ letter }) => letter).join(", ");
    const message = `instance.expected_answer: must be one of the options' letters, ${letters}`;
    throw new ServiceError("invalid_field", message, { field: "instance.expected_answer" });
  }
  const sources = [row.template_metadata?.output_regex ?? []].flat();
  const outputRegexes = sources.map(compiled);
  const asked = { options, expected, mode: row.grading_mode ?? mode, outputRegexes };
  return { kind: "choice", question: asked } as const;
}

/** An option without a text is none. */
function lettered(options: NonNullable<AnswerFields["options"]>): ChoiceQuestion["options"] {
  const entries = Array.isArray(options)
    ? options.flatMap((option, index): [string, string | null][] =>
        typeof option === "string"
          ? [[String.fromCharCode("A".charCodeAt(0) + index), option]]
          : Object.entries(option),
      )
    : Object.entries(options);
  return entries.flatMap(([letter, text]) =>
    text === null ? [] : [{ letter: letter.trim().toUpperCase(), text }],
  );
}

/** RE2 and not the platform's own: a row's expression on a model's text must not take for ever. */
function compiled(source: string): RE2JS {
  const field = "instance.template_metadata.output_regex";
  if (source.length > MAX_REGEX_SOURCE) {
    const message = `${field}: has more than ${MAX_REGEX_SOURCE} characters`;
    throw new ServiceError("invalid_field", message, { field });
  }
  try {
    return RE2JS.compile(source, RE2JS.CASE_INSENSITIVE);
  } catch (error) {
    const mend = "use RE2's syntax, which has no lookaround and no backreferences";
    throw new ServiceError("invalid_field", `${field}: ${(error as Error).message}`, {
      field,
      mend,
    });
  }
}

function missing(field: string, name: string): ServiceError {
  return new ServiceError("invalid_field", `${field}: the row has no ${name}`, { field });
}

/** Whether an answer can be judged with what the operator has set. @throws ServiceError `invalid_field` */
export function requireJudge(check: { kind: string }, { judge }: TaskSettings): void {
  if (check.kind !== "judge" || judge !== null) return;
  throw new ServiceError("invalid_field", "free answers need a judge, and the server has none", {
    field: "instance.data_source",
    mend: "start the server with --judge-url and --judge-model, or give the row `options`",
  });
}

/**
 * Free answers: what is in the box, or the whole message where nothing is boxed. Where it is equal as mathematics
 * or as text, no judge is asked.
 */
export async function checkAnswer(
  check: AnswerCheck,
  message: string | null,
  { judge }: TaskSettings,
  signal: AbortSignal,
): Promise<Verdict> {
  if (check.kind === "choice") return gradeChoice(check.question, message);
  const said = afterThinking(message ?? "").trim();
  if (said === "") return { reward: 0, rule: "no_answer", reason: "There is no answer." };
  const { question, reference } = check;
  const boxed = lastBoxed(said);
  if (boxed !== null) {
    const plain = await gradeMathAnswer(said, [reference]);
    if (plain.reward === 1) return plain;
  }
  if (judge === null) throw new ServiceError("judge_failed", "no judge is set on this server");
  return await judgeAnswer(judge, { question, reference, answer: boxed ?? said }, signal);
}
