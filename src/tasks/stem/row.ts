import { z } from "zod";
import { type AnswerCheck, answerCheck, answerFields } from "../answer-check.ts";
import { parseRow } from "../parse-row.ts";
import { promptSchema, promptText } from "../problem.ts";

const rowSchema = z
  .looseObject({
    data_source: z.string().optional(),
    prompt: promptSchema.nullish(),
    question: promptSchema.nullish(),
    responses_create_params: z.looseObject({ input: promptSchema }).nullish(),
    ...answerFields,
  })
  .refine((row) => row.prompt ?? row.question ?? row.responses_create_params, {
    path: ["prompt"],
    message: "is missing, and so are question and responses_create_params",
  });

export type StemInstance = { problem: string; check: AnswerCheck };

export function parseStemRow(raw: Record<string, unknown>): StemInstance {
  const row = parseRow(rowSchema, raw);
  const problem = promptText(
    row.prompt ?? row.question ?? row.responses_create_params?.input ?? [],
  );
  const mode = row.data_source?.startsWith("gpqa") ? "gpqa" : "lenient_boxed";
  return { problem, check: answerCheck(row, problem, mode) };
}
