import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { lastBoxed } from "../../verifiers/boxed.ts";
import { UNREADABLE_TRUTH, unreadableTruth } from "../../verifiers/math-truth.ts";
import { fromJsonText } from "../from-json-text.ts";
import { parseRow } from "../parse-row.ts";
import { promptSchema, promptText, withoutEnd } from "../problem.ts";

const truth = z.union([z.string(), z.number()]).transform(String);
// Not JSON text: "[1, 2]" is an interval, not two accepted answers.
const truths = z.union([truth.transform((one) => [one]), z.array(truth).min(1)]);

/**
 * Rows of DeepScaleR, as prepared for training (`prompt`, `reward_model`) and as published (`problem`, `answer`),
 * and of the sets beside it: GSM8K, MATH, AIME, Olympiad Bench, Minerva, DAPO, NeMo Gym. Merged datasets store nested
 * values as JSON text, and null for what a row does not have.
 */
const rowSchema = z.looseObject({
  prompt: promptSchema.nullish(),
  problem: promptSchema.nullish(),
  question: promptSchema.nullish(),
  responses_create_params: z.looseObject({ input: promptSchema }).nullish(),
  reward_model: z.preprocess(fromJsonText, z.looseObject({ ground_truth: truths })).nullish(),
  answer: truths.nullish(),
  expected_answer: truths.nullish(),
  solution: z.unknown().optional(),
});

const SHOWN_CHARS = 80;

type Row = z.output<typeof rowSchema>;

export type MathInstance = {
  problem: string;
  /** Any one of them is right. */
  truths: string[];
};

/** Datasets add these for models without tools; here the prompt says it in its own words. */
const BEFORE =
  /^Solve the following math problem step by step\. The last line of your response should be of the form Answer: \$Answer \(without quotes\) where \$Answer is the answer to the problem\.\s*/;
const BEHIND = [
  /Let's think step by step and output the final answer (?:within \\boxed\{\}|after "####")\.?$/,
  /Remember to put your answer on its own line after "Answer:"\.?$/,
];

export function parseMathRow(raw: Record<string, unknown>): MathInstance {
  const row = parseRow(rowSchema, raw);
  const asked = row.prompt ?? row.problem ?? row.responses_create_params?.input ?? row.question;
  if (!asked) throw missing("prompt", "problem and question");
  const problem = BEHIND.reduce(withoutEnd, promptText(asked).replace(BEFORE, ""));
  const [field, truths] = truthsOf(row);
  for (const truth of truths) requireReadable(truth, `instance.${field}`);
  return { problem, truths };
}

/** A row whose truth can't be compared would train right answers as wrong. */
function requireReadable(truth: string, field: string): void {
  const why = unreadableTruth(truth);
  if (why === null) return;
  const shown = truth.length > SHOWN_CHARS ? `${truth.slice(0, SHOWN_CHARS)}…` : truth;
  const message = `${field}: the truth ${JSON.stringify(shown)} ${why}`;
  throw new ServiceError("invalid_field", message, { field, mend: UNREADABLE_TRUTH });
}

function truthsOf(row: Row): [field: string, truths: string[]] {
  const given = row.reward_model?.ground_truth;
  if (given) return ["reward_model.ground_truth", given];
  if (row.expected_answer) return ["expected_answer", row.expected_answer];
  if (row.answer) return ["answer", row.answer.map((answer) => endOfWorking(answer) ?? answer)];
  const worked = typeof row.solution === "string" ? row.solution : "";
  const end = endOfWorking(worked) ?? lastBoxed(worked);
  if (end) return ["solution", [end]];
  throw missing("reward_model", "answer, expected_answer and a solution that ends with the answer");
}

/** GSM8K writes the way to an answer before it. */
function endOfWorking(text: string): string | null {
  const trimmed = text.trimEnd();
  const line = trimmed.slice(trimmed.lastIndexOf("\n") + 1);
  return (line.startsWith("####") && line.slice("####".length).trim()) || null;
}

function missing(name: string, others: string): ServiceError {
  const field = `instance.${name}`;
  const message = `${field}: is missing, and so are ${others}`;
  return new ServiceError("invalid_field", message, { field });
}
