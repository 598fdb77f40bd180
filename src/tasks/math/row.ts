import { z } from "zod";
import { fromJsonText } from "../from-json-text.ts";
import { parseRow } from "../parse-row.ts";
import { promptSchema, promptText } from "../problem.ts";

const truth = z.union([z.string(), z.number()]).transform(String);

/** A DeepScaleR row as published. Merged datasets store nested values as JSON text. */
const rowSchema = z.looseObject({
  prompt: promptSchema,
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
  return { problem: promptText(prompt).replace(SUFFIX, ""), truths: reward_model.ground_truth };
}
