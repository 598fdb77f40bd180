import { z } from "zod";
import { ServiceError } from "../../errors.ts";
import { exactJson } from "../../lib/exact-json.ts";
import { fromJsonText } from "../from-json-text.ts";
import { parseRow } from "../parse-row.ts";
import { promptSchema, promptText, withoutEnd } from "../problem.ts";
import { type CodeTest, readTests } from "./tests.ts";
import { TestsUnreadable } from "./tests-unreadable.ts";

const jsonObject = z.preprocess(fromJsonText, z.looseObject({}));

/** Rows of the DeepCoder family, PRIME, APPS, TACO, Codeforces, LiveCodeBench and NeMo Gym, as published. */
const rowSchema = z.looseObject({
  data_source: z.string().optional(),
  prompt: promptSchema.nullish(),
  problem: z.string().nullish(),
  question: z.string().nullish(),
  question_content: z.string().nullish(),
  starter_code: z.string().nullish(),
  responses_create_params: z.looseObject({ input: promptSchema }).nullish(),
  reward_model: z
    .preprocess(fromJsonText, z.looseObject({ ground_truth: z.unknown().optional() }))
    .nullish(),
  verifier_metadata: z.looseObject({ unit_tests: z.unknown().optional() }).nullish(),
  input_output: z.unknown().optional(),
  private_test_cases: z.unknown().optional(),
  public_test_cases: z.unknown().optional(),
  tests: z.unknown().optional(),
  metadata: jsonObject.nullish(),
  /** `all`: 1 only if every test passes. `share`: the share that passes. */
  grading: z.enum(["all", "share"]).nullish(),
  /** Of one test, in CPU time. */
  test_timeout_ms: z.number().min(100).max(600_000).nullish(),
  /** So many at most, those with the longest input. */
  max_tests: z.int().min(1).nullish(),
});

type Row = z.output<typeof rowSchema>;

export type CodeInstance = {
  problem: string;
  tests: CodeTest[];
  grading: "all" | "share";
  testTimeoutMs: number;
};

/** Sets whose rows are graded by the share of tests that pass. */
const SHARED = ["codecontests", "apps", "codeforces", "taco"];
const DEEPCODER = { testTimeoutMs: 12_000, maxTests: 15 };
const OTHERS = { testTimeoutMs: 10_000, maxTests: Number.POSITIVE_INFINITY };

export function parseCodeRow(raw: Record<string, unknown>): CodeInstance {
  const row = parseRow(rowSchema, raw);
  const source = row.data_source ?? "";
  const defaults = source.startsWith("deepcoder") ? DEEPCODER : OTHERS;
  const tests = testsOf(row);
  return {
    problem: problemOf(row),
    tests: longest(tests, row.max_tests ?? defaults.maxTests),
    grading: row.grading ?? (SHARED.includes(source) ? "share" : "all"),
    testTimeoutMs: row.test_timeout_ms ?? defaults.testTimeoutMs,
  };
}

/** Datasets append this for models without tools; here the prompt says it in its own words. */
const SUFFIX =
  /Write Python code to solve the problem\. Present the code in\s*```python\s*Your code\s*```\s*at the end\.?$/;

function problemOf(row: Row): string {
  const asked = row.prompt ?? row.responses_create_params?.input;
  const text = asked ? promptText(asked) : (row.problem ?? row.question ?? row.question_content);
  if (!text) {
    const message = "instance.prompt: is missing, and so are problem and question";
    throw new ServiceError("invalid_field", message, { field: "instance.prompt" });
  }
  const starter = row.starter_code?.trim();
  const problem = withoutEnd(text, SUFFIX);
  return starter ? `${problem}\n\nBegin with this code:\n\n${starter}` : problem;
}

function testsOf(row: Row): CodeTest[] {
  const name = row.metadata?.func_name;
  const called = typeof name === "string" && name !== "" ? name : null;
  for (const [field, value] of testFields(row)) {
    if (value === undefined || value === null) continue;
    const tests = inField(field, () => readTests(value, called));
    if (tests.length > 0) return tests;
  }
  const mend = "put them into reward_model.ground_truth, as `inputs` and `outputs`";
  const message = "the row has no tests";
  throw new ServiceError("invalid_field", message, { field: "instance.reward_model", mend });
}

function testFields(row: Row): [field: string, value: unknown][] {
  return [
    ["tests", row.tests],
    ["reward_model.ground_truth", row.reward_model?.ground_truth],
    ["verifier_metadata.unit_tests", row.verifier_metadata?.unit_tests],
    ["private_test_cases", row.private_test_cases],
    ["public_test_cases", row.public_test_cases],
    ["input_output", row.input_output],
  ];
}

function inField<T>(name: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    if (!(error instanceof TestsUnreadable)) throw error;
    const field = `instance.${name}`;
    throw new ServiceError("invalid_field", `${field}: ${error.message}`, { field });
  }
}

function longest(tests: CodeTest[], count: number): CodeTest[] {
  if (tests.length <= count) return tests;
  const length = (test: CodeTest) =>
    test.kind === "stdin" ? test.input.length : exactJson(test.args).length;
  return tests.toSorted((a, b) => length(b) - length(a)).slice(0, count);
}
