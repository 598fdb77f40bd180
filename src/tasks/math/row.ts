import { z } from "zod";
import { parseRow } from "../parse-row.ts";

const messages = z
  .array(z.looseObject({ role: z.string().optional(), content: z.string() }))
  .min(1);

const truth = z.union([z.string(), z.number()]).transform(String);

/** A DeepScaleR row as published. Merged datasets store nested values as JSON text. */
const rowSchema = z.looseObject({
  prompt: z.preprocess(fromJsonText, messages),
  reward_model: z.preprocess(
    fromJsonText,
    z.looseObject({
      // Not JSON text: "[1, 2]" is an interval, not two accepted answers.
      ground_truth: z.union([truth.transform((one) => [one]), z.array(truth).min(1)]),
    }),
  ),
});

export type MathInstance = {
  problem: string;
  /** Any one of them is right. */
  truths: string[];
};

/** Datasets append this for models without tools; here the prompt says it in its own words. */
const SUFFIX = /\s*Let's think step by step and output the final answer within \\boxed\{\}\.?\s*$/;

export function parseMathRow(row: Record<string, unknown>): MathInstance {
  const { prompt, reward_model } = parseRow(rowSchema, row);
  const problem = prompt.map((message) => message.content).join("\n\n");
  return { problem: problem.replace(SUFFIX, ""), truths: reward_model.ground_truth };
}

/** Text that is a JSON list or object becomes it. */
function fromJsonText(value: unknown): unknown {
  if (typeof value !== "string" || !/^\s*[[{]/.test(value)) return value;
  try {
    return JSON.parse(value);
  } catch {
    return value;
  }
}
