import { describe, expect, test } from "bun:test";
import { scorerOf } from "../../../src/compat/nemo-gym/scorer.ts";
import { ServiceError } from "../../../src/errors.ts";

const BOXED = { input: [{ role: "user", content: "What is 2+2? Answer in \\boxed{}." }] };
const MATH = { responses_create_params: BOXED, question: "What is 2+2?", expected_answer: "4" };
const TESTS = { unit_tests: { inputs: ["1"], outputs: ["2"] } };

function scored(row: object, tools: string[] = [], servers: Record<string, string> = {}) {
  try {
    return scorerOf(row as Record<string, unknown>, tools, servers);
  } catch (error) {
    if (error instanceof ServiceError) return [error.code, error.field];
    throw error;
  }
}

const agent = (name: string) => ({ agent_ref: { type: "responses_api_agents", name } });
const REFUSED = ["unknown_task_kind", "instance"];

describe("a row without a name for its server", () => {
  test("is scored by the check that its fields are known for", () => {
    const choice = { options: [{ A: "x" }], expected_answer: "A", grading_mode: "lenient_boxed" };
    for (const [check, row] of Object.entries({
      math: { ...MATH, ...agent("rolloutd"), _ng_task_index: 3, uuid: "u" },
      choice: { responses_create_params: BOXED, ...choice },
      code: { verifier_metadata: TESTS, dataset: "taco", hash_id: "h", source: "s" },
      instructions: { instruction_id_list: ["x"], kwargs: [{}], prompt: "p", id: 1 },
      tool_calls: { expected_answers: [], id: "0" },
    })) {
      expect(scored(row)).toEqual({ check: check as never });
    }
  });

  const UNSAID: [what: string, row: object][] = [
    ["a field that another server's rows have", { ...MATH, problem_type: "parents" }],
    ["an answer in words", { ...MATH, expected_answer: "darwin" }],
    ["no answer", { ...MATH, expected_answer: null }],
    ["a prompt that asks for no box", { ...MATH, responses_create_params: { input: "2+2?" } }],
    ["tests that are none of code_gen's", { verifier_metadata: { task_id: "HumanEval/0" } }],
    ["options without a mode", { options: [{ A: "x" }], expected_answer: "A" }],
    [
      "options in a mode of another server",
      { options: [{ A: "x" }], expected_answer: "A", grading_mode: "strict" },
    ],
    [
      "options that are asked for in another way than they are graded by",
      {
        options: [{ A: "x" }],
        expected_answer: "A",
        grading_mode: "strict_single_letter_boxed",
        responses_create_params: { input: "End with 'Answer: X'." },
      },
    ],
    ["nothing", {}],
  ];
  test.each(UNSAID)("is refused with %s", (_what, row) => {
    expect(scored(row)).toEqual(REFUSED);
  });
});

describe("a row that names its server", () => {
  test("by agent_ref or verifier_type is scored by the check that gives its rewards", () => {
    const other = { ...MATH, subset_for_metrics: "aime25", expected_answer: "\\text{two}" };
    expect(scored({ ...other, ...agent("math_with_judge_simple_agent") })).toEqual({
      check: "math",
    });
    expect(scored({ ...other, ...agent("x_agent"), verifier_type: "math_with_judge" })).toEqual({
      check: "math",
    });
  });

  test("is refused by that name where no check gives its rewards", () => {
    for (const name of ["graphwalks_simple_agent", "simpleqa_simple_agent", "__proto___agent"]) {
      expect(scored({ ...MATH, ...agent(name) })).toEqual(["unknown_task_kind", "agent_ref.name"]);
    }
    expect(scored({ ...MATH, verifier_type: "mrcr" })).toEqual([
      ...["unknown_task_kind", "verifier_type"],
    ]);
  });

  test("is refused where it lacks what the check reads", () => {
    expect(scored({ ...agent("code_gen_simple_agent"), verifier_metadata: {} })).toEqual([
      ...["unknown_task_kind", "agent_ref.name"],
    ]);
  });

  test("is scored by that server where the operator names it, whatever else its fields say", () => {
    const servers = { graphwalks: "http://g", math_with_judge: "http://m", "*": "http://rest" };
    const url = (name: string) => scored({ ...MATH, ...agent(name) }, [], servers);
    expect(url("graphwalks_simple_agent")).toEqual({ url: "http://g" });
    expect(url("math_with_judge_simple_agent")).toEqual({ url: "http://m" });
    expect(url("mrcr_simple_agent")).toEqual({ url: "http://rest" });
    expect(scored(MATH, [], servers)).toEqual({ check: "math" });
  });
});

test("tools belong to the row's server: a row that has some is not answered without them", () => {
  expect(scored({ ...MATH, ...agent("math_with_judge_simple_agent") }, ["run"])).toEqual([
    ...["unknown_task_kind", "agent_ref.name"],
  ]);
  expect(scored(MATH, ["run"])).toEqual(REFUSED);
  expect(scored(MATH, ["run"], { "*": "http://rest" })).toEqual({ url: "http://rest" });
  expect(scored({ expected_answers: [] }, ["get_weather"])).toEqual({ check: "tool_calls" });
});
