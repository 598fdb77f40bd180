import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import type { Message, ToolSchema } from "../../inference/engine.ts";
import { isObject } from "../../lib/is-object.ts";
import { type Instruction, uncheckable } from "../../verifiers/instructions/grade.ts";
import type { ExpectedCall } from "../../verifiers/tool-calls.ts";
import { type AnswerCheck, answerCheck, answerFields } from "../answer-check.ts";
import { type CodeInstance, parseCodeRow } from "../code/row.ts";
import { fromJsonText, fromToolsText } from "../from-json-text.ts";
import { parseMathRow } from "../math/row.ts";
import { parseRow } from "../parse-row.ts";
import { promptMessages, promptSchema } from "../problem.ts";

export type ReasoningCheck =
  | AnswerCheck
  | { kind: "math"; truths: string[] }
  | { kind: "code"; instance: CodeInstance }
  | { kind: "instructions"; instructions: Instruction[]; grading: "all" | "share" }
  | { kind: "tool_calls"; expected: ExpectedCall[] };

export type ReasoningInstance = { messages: Message[]; tools: ToolSchema[]; check: ReasoningCheck };

const CHECKS = ["math", "code", "instructions", "tool_calls", "choice", "judge"] as const;

/** Which check a set is graded by, where its rows do not say it. */
const CHECK_OF_SOURCE: [pattern: RegExp, check: (typeof CHECKS)[number]][] = [
  [/^(math|deepscaler|gsm8k|aime)/i, "math"],
  [/^(deepcoder|codecontests|apps|codeforces|taco|livecodebench|leetcode|code|rstar)/i, "code"],
  [/^(if_?eval|instruction_following)/i, "instructions"],
  [/^tool_call/i, "tool_calls"],
];

const args = z.record(z.string(), z.unknown());
const truthSchema = z.preprocess(fromJsonText, z.unknown());
const rowSchema = z.looseObject({
  data_source: z.string().default("reasoning"),
  prompt: promptSchema.nullish(),
  question: promptSchema.nullish(),
  problem: promptSchema.nullish(),
  query: promptSchema.nullish(),
  responses_create_params: z
    .looseObject({ input: z.unknown(), tools: z.array(z.looseObject({})).nullish() })
    .nullish(),
  verifier: z.enum(CHECKS).nullish(),
  tools: z.preprocess(fromToolsText, z.array(z.looseObject({}))).nullish(),
  reward_model: z
    .preprocess(fromJsonText, z.looseObject({ ground_truth: truthSchema.optional() }))
    .nullish(),
});
const instructionsSchema = z.looseObject({
  instruction_id_list: z.array(z.string()).min(1),
  kwargs: z.array(args.nullable()).default([]),
  grading_mode: z.enum(["binary", "fraction"]).nullish(),
});
const callsSchema = z.array(
  z.looseObject({ name: z.string(), arguments: z.preprocess(fromJsonText, args) }),
);
const toolSchema = z.looseObject({
  name: z.string().min(1),
  description: z.string().default(""),
  // Itself, not a copy: it remembers the text that it was read from.
  parameters: z.custom<Record<string, unknown>>(isObject, "must be an object").default({}),
});

type Row = z.output<typeof rowSchema>;

export function parseReasoningRow(raw: Record<string, unknown>): ReasoningInstance {
  const row = parseRow(rowSchema, raw);
  const input = row.responses_create_params?.input;
  const prompt =
    row.prompt ??
    (input == null ? input : parseRow(z.looseObject({ input: promptSchema }), { input }).input) ??
    row.question ??
    row.problem ??
    row.query;
  if (!prompt) {
    const message = "instance.prompt: is missing";
    throw new ServiceError("invalid_field", message, { field: "instance.prompt" });
  }
  const messages = promptMessages(prompt);
  const question = messages.map(({ content }) => content).join("\n\n");
  const tools = (row.tools ?? row.responses_create_params?.tools ?? []).map(
    (tool): ToolSchema => ({
      type: "function",
      function: parseRow(toolSchema, (tool.function ?? tool) as Record<string, unknown>),
    }),
  );
  return { messages, tools, check: checkOf(row, raw, question) };
}

function checkOf(row: Row, raw: Record<string, unknown>, question: string): ReasoningCheck {
  const bySource = CHECK_OF_SOURCE.find(([pattern]) => pattern.test(row.data_source))?.[1];
  const truth = row.reward_model?.ground_truth;
  switch (row.verifier ?? bySource) {
    case "math":
      return { kind: "math", truths: parseMathRow(raw).truths };
    case "code":
      return { kind: "code", instance: parseCodeRow(raw) };
    case "instructions":
      return instructionsOf({ ...(isObject(truth) ? truth : {}), ...raw });
    case "tool_calls": {
      // xLAM calls them answers, NeMo Gym's rows of it expected answers.
      const own = raw.expected_tool_calls ?? raw.expected_answers ?? raw.answers;
      const calls = own ?? (isObject(truth) ? [truth] : truth);
      const parsed = parseRow(z.looseObject({ expected_tool_calls: callsSchema }), {
        expected_tool_calls: fromJsonText(calls),
      });
      return { kind: "tool_calls", expected: parsed.expected_tool_calls };
    }
    default:
      return answerCheck(parseRow(z.looseObject(answerFields), raw), question, "lenient_boxed");
  }
}

function instructionsOf(raw: Record<string, unknown>): ReasoningCheck {
  const row = parseRow(instructionsSchema, raw);
  const instructions = row.instruction_id_list.map((id, index) => ({
    id,
    args: Object.fromEntries(
      Object.entries(row.kwargs[index] ?? {}).filter(([, value]) => value !== null),
    ),
  }));
  for (const [index, instruction] of instructions.entries()) {
    const why = uncheckable(instruction);
    if (why === null) continue;
    const field = `instance.instruction_id_list[${index}]`;
    throw new ServiceError("invalid_field", `${field}: ${why}`, { field });
  }
  return {
    kind: "instructions",
    instructions,
    grading: row.grading_mode === "fraction" ? "share" : "all",
  };
}
