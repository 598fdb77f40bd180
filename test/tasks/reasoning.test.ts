import { describe, expect, test } from "bun:test";
import { reasoning } from "../../src/tasks/reasoning/reasoning.ts";
import { setup } from "../sandbox/setup.ts";
import { failureOf } from "../support/failure.ts";
import type { Scripted } from "../support/fake-engine.ts";
import { calls, says } from "../support/fake-engine.ts";
import { jsonServer } from "../support/json-server.ts";
import { play } from "../support/play.ts";
import { TASK_SETTINGS } from "../support/task-context.ts";

const MATH = {
  data_source: "deepscaler",
  prompt: [{ role: "user", content: "What is 1+1? Let's think step by step." }],
  reward_model: { ground_truth: "2" },
};
const CODE = {
  data_source: "taco",
  prompt: "Double a number.",
  reward_model: { ground_truth: '{"inputs": ["2", "3"], "outputs": ["4", "6"]}' },
};
const IF_EVAL = {
  data_source: "if_eval",
  prompt: "Say hello without commas, and mention a cat.",
  instruction_id_list: ["punctuation:no_comma", "keywords:existence"],
  kwargs: [null, { keywords: ["cat"], num_words: null }],
};
const TOOL_CALL = {
  data_source: "tool_call",
  prompt: [
    { role: "system", content: "Use tools." },
    { role: "user", content: "Weather in Rome?" },
  ],
  tools: [{ type: "function", function: { name: "weather", description: "…", parameters: {} } }],
  reward_model: { ground_truth: '[{"name": "weather", "arguments": {"city": "Rome"}}]' },
};
const MCQA = {
  data_source: "llm_judge",
  prompt: "A or B?",
  options: ["a", "b"],
  expected_answer: "B",
};

async function verdictOf(row: Record<string, unknown>, reply: Scripted) {
  const { reward, rule } = await play(reasoning, row, [reply]).verdict();
  return [reward, rule];
}

describe("one completion is scored", () => {
  test("as mathematics", async () => {
    expect(await verdictOf(MATH, says("<think>3?</think> \\boxed{2}"))).toEqual([
      1,
      expect.any(String),
    ]);
    expect(await verdictOf(MATH, says("\\boxed{3}"))).toEqual([0, "not_equal"]);
    expect(await verdictOf(MATH, says("\\boxed{1+1}"))).toEqual([0, "copied_question"]);
  });

  test("as instructions that were followed", async () => {
    expect(await verdictOf(IF_EVAL, says("Hello cat"))).toEqual([1, "instructions_followed"]);
    expect(await verdictOf(IF_EVAL, says("Hello, cat"))).toEqual([0, "instructions_broken"]);
    const share = { ...IF_EVAL, grading_mode: "fraction" };
    expect(await verdictOf(share, says("Hello, cat"))).toEqual([0.5, "instructions_broken"]);
  });

  test("as tool calls, native ones and those in the text", async () => {
    const right = calls(["weather", { city: "Rome" }]);
    expect(await verdictOf(TOOL_CALL, right)).toEqual([1, "tool_calls_equal"]);
    expect(await verdictOf(TOOL_CALL, calls(["weather", { city: "Oslo" }]))).toEqual([
      0,
      "tool_call_missing",
    ]);
    const text = '<tool_call>{"name": "weather", "arguments": {"city": "Rome"}}</tool_call>';
    expect(await verdictOf(TOOL_CALL, says(text))).toEqual([1, "tool_calls_equal"]);
    expect(await verdictOf(TOOL_CALL, says("Sunny."))).toEqual([0, "no_tool_call"]);
  });

  test.each([
    [
      "xLAM",
      { query: "Weather in Rome?", tools: JSON.stringify([{ name: "weather" }]) },
      "answers",
    ],
    [
      "NeMo Gym",
      {
        responses_create_params: {
          input: "Weather in Rome?",
          tools: [{ type: "function", name: "weather", parameters: {}, strict: false }],
        },
      },
      "expected_answers",
    ],
  ])("as tool calls, where the row is %s's", async (_set, asked, field) => {
    const expected = [{ name: "weather", arguments: { city: "Rome" } }];
    const answers = field === "answers" ? JSON.stringify(expected) : expected;
    const row = { data_source: "tool_call", ...asked, [field]: answers };
    expect(await verdictOf(row, calls(["weather", { city: "Rome" }]))).toEqual([
      1,
      "tool_calls_equal",
    ]);
    expect(await verdictOf(row, calls(["weather", { city: "Oslo" }]))).toEqual([
      0,
      "tool_call_missing",
    ]);
  });

  test("as a choice, and by a judge", async () => {
    expect(await verdictOf(MCQA, says("\\boxed{B}"))).toEqual([1, "right_choice"]);
    const { options: _, ...free } = MCQA;
    using server = jsonServer(() => ({ choices: [{ message: { content: "[[A!=B]]" } }] }));
    const judge = { url: server.url, model: "m", apiKeyEnv: null, timeoutMs: 2000, maxTokens: 9 };
    const t = play(reasoning, free, [says("C")], { settings: { ...TASK_SETTINGS, judge } });
    expect(await t.verdict()).toMatchObject({ reward: 0, rule: "judged_different" });
  });

  test("as a program, in a sandbox that only EVAL has", async () => {
    expect(reasoning.sandboxes(reasoning.parse(CODE), TASK_SETTINGS)).toEqual({
      agent: false,
      evaluation: "fresh",
      image: null,
    });
    await using bundle = await setup("bubblewrap");
    const sandbox = await bundle.open();
    const verdict = (code: string) =>
      play(reasoning, CODE, [says(`\`\`\`python\n${code}\n\`\`\``)]).verdict({ sandbox });
    expect(await verdict("print(2 * int(input()))")).toMatchObject({ reward: 1 });
    expect(await verdict("print(4)")).toMatchObject({ reward: 0.5, rule: "some_tests_passed" });
    const none = play(reasoning, CODE, [says("2 * n")]);
    expect(await none.verdict({ sandbox })).toMatchObject({ reward: 0, rule: "no_solution" });
  });
});

test("the model sees the row's messages and tools as they are, once", async () => {
  const t = play(reasoning, TOOL_CALL, [says("hm")], {
    options: { agent: { max_turns: 9, tools: ["execute_bash"] } },
  });
  expect(await t.run()).toEqual({ stop_reason: "answer", final_message: "hm", turns: 1 });
  expect(t.engine.requests).toHaveLength(1);
  expect(t.engine.requests[0]?.messages).toEqual(TOOL_CALL.prompt as never);
  expect(t.toolNames()).toEqual(["weather"]);
});

test.each([
  [{ ...IF_EVAL, instruction_id_list: ["a:b"] }, "instance.instruction_id_list[0]"],
  [{ ...TOOL_CALL, reward_model: { ground_truth: "Rome" } }, "instance.expected_tool_calls"],
  [{ ...MATH, reward_model: { ground_truth: "\\int f" } }, "instance.reward_model.ground_truth"],
  [{ ...MATH, reward_model: {} }, "instance.reward_model.ground_truth"],
  [{ ...CODE, reward_model: {} }, "instance.reward_model"],
  [{ ...MATH, prompt: undefined }, "instance.prompt"],
  [{ data_source: "reasoning", prompt: "x" }, "instance.reward_model"],
])("a row that can't be scored is refused at its field", async (row, field) => {
  expect((await failureOf(() => reasoning.parse(row))).field).toBe(field);
});
