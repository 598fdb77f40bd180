import { describe, expect, test } from "bun:test";
import { stem } from "../../src/tasks/stem/stem.ts";
import { failureOf } from "../support/failure.ts";
import { calls, says } from "../support/fake-engine.ts";
import { FakeSandbox } from "../support/fake-sandbox.ts";
import { jsonServer } from "../support/json-server.ts";
import { play } from "../support/play.ts";
import { TASK_SETTINGS } from "../support/task-context.ts";

const MCQA = {
  data_source: "mcqa",
  responses_create_params: {
    input: [{ role: "user", content: "Which is blue?\nA: grass\nB: sky" }],
  },
  options: [{ A: "grass" }, { B: "sky" }],
  expected_answer: "B",
  grading_mode: "lenient_answer_colon_md",
};
const FREE = {
  data_source: "stem",
  prompt: [{ role: "user", content: "What is water?" }],
  reward_model: '{"ground_truth": "H2O"}',
};

function finish(message: string) {
  return [calls(["finish", { message }])];
}

function withJudge(url: string) {
  const judge = { url, model: "judge", apiKeyEnv: null, timeoutMs: 2000, maxTokens: 10 };
  return { ...TASK_SETTINGS, judge };
}

describe("multiple choice", () => {
  test.each([
    ["Answer: B", 1, "right_choice"],
    ["Answer: A", 0, "wrong_choice"],
    ["it is the sky", 0, "no_choice"],
  ])("%j earns %p", async (message, reward, rule) => {
    const t = play(stem, MCQA, finish(message), { sandbox: new FakeSandbox() });
    expect(await t.verdict()).toMatchObject({ reward, rule });
    expect(t.prompt()).toContain("Which is blue?");
    expect(t.prompt()).toContain("`Answer: X`");
    expect(t.toolNames()).toEqual(["execute_ipython_cell", "think", "finish"]);
  });

  test("a rollout that ended without an answer earns nothing", async () => {
    const t = play(stem, MCQA, [says("hm")], { options: { agent: { max_turns: 1 } } });
    expect(await t.verdict()).toMatchObject({ reward: 0, rule: "no_choice" });
  });

  test("GPQA takes a boxed letter or the last `Answer:`", async () => {
    const row = { ...MCQA, data_source: "gpqa_diamond", grading_mode: undefined };
    expect(await play(stem, row, finish("\\boxed{B}")).verdict()).toMatchObject({ reward: 1 });
    expect(await play(stem, row, finish("Answer: A")).verdict()).toMatchObject({ reward: 0 });
  });
});

describe("free answers", () => {
  test("go to the judge, which is asked twice, unless they are equal as they are", async () => {
    using judge = jsonServer(() => ({ choices: [{ message: { content: "[[A=B]]" } }] }));
    const settings = withJudge(judge.url);
    const verdict = (message: string) => play(stem, FREE, finish(message), { settings }).verdict();
    expect(await verdict("\\boxed{\\text{dihydrogen oxide}}")).toMatchObject({
      reward: 1,
      rule: "judged_equal",
    });
    expect(judge.asked).toHaveLength(2);
    expect(await verdict("\\boxed{H2O}")).toMatchObject({ reward: 1 });
    expect(judge.asked).toHaveLength(2);
    expect(await verdict("")).toMatchObject({ reward: 0, rule: "no_answer" });
  });

  test("of which the judge fails have no reward", async () => {
    using judge = jsonServer(() => new Response("down", { status: 500 }));
    const t = play(stem, FREE, finish("\\boxed{ice}"), { settings: withJudge(judge.url) });
    expect((await failureOf(t.verdict)).code).toBe("judge_failed");
  });

  test("are refused at submission where the server has no judge", async () => {
    const refused = await failureOf(() => stem.sandboxes(stem.parse(FREE), TASK_SETTINGS));
    expect([refused.code, refused.mend]).toEqual([
      "invalid_field",
      expect.stringContaining("--judge-url"),
    ]);
    expect(stem.sandboxes(stem.parse(MCQA), TASK_SETTINGS).agent).toBe(true);
  });
});

describe("web search", () => {
  const searching = (url: string) => ({
    ...TASK_SETTINGS,
    search: { url: `${url}/search`, apiKeyEnv: "ROLLOUTD_TEST_SEARCH_KEY", timeoutMs: 2000 },
  });
  const script = [calls(["web_search", { query: "colour of the sky" }]), ...finish("Answer: B")];

  test("is a tool where the operator names a server, which alone is asked, with its key", async () => {
    process.env.ROLLOUTD_TEST_SEARCH_KEY = "secret";
    const keys: unknown[] = [];
    using server = jsonServer((_path, _body, request) => {
      keys.push(request.headers.get("authorization"));
      const found = { title: "Sky", url: "https://example.org/sky", content: "It is blue." };
      return { results: [found, { url: "https://example.org/b", snippet: "Or grey." }] };
    });
    const t = play(stem, MCQA, script, { settings: searching(server.url) });
    expect(await t.verdict()).toMatchObject({ reward: 1 });
    expect(t.toolNames()).toContain("web_search");
    expect(server.asked).toEqual([
      { path: "/search", body: { query: "colour of the sky", max_results: 5 } },
    ]);
    expect(keys).toEqual(["Bearer secret"]);
    const told = t.engine.requests[1]?.messages.at(-1)?.content;
    expect(told).toBe(
      "[1] Sky\nhttps://example.org/sky\nIt is blue.\n\n[2] \nhttps://example.org/b\nOr grey.",
    );
    delete process.env.ROLLOUTD_TEST_SEARCH_KEY;
  });

  test("that fails ends the rollout without a reward; a bad query is the model's to mend", async () => {
    using server = jsonServer(() => new Response("no", { status: 403 }));
    const settings = searching(server.url);
    const failure = await failureOf(play(stem, MCQA, script, { settings }).verdict);
    expect([failure.code, failure.message]).toEqual([
      "tool_server_failed",
      `the search server at ${new URL(server.url).host} failed: HTTP 403: no`,
    ]);
    const asks = [calls(["web_search", { query: " " }]), ...finish("Answer: B")];
    expect(await play(stem, MCQA, asks, { settings }).verdict()).toMatchObject({ reward: 1 });
    expect(server.asked).toHaveLength(1);
  });
});

test.each([
  [{ ...MCQA, expected_answer: "C" }, "instance.expected_answer"],
  [{ ...MCQA, expected_answer: null }, "instance.reward_model"],
  [
    { ...MCQA, template_metadata: { output_regex: "(" } },
    "instance.template_metadata.output_regex",
  ],
  [{ ...MCQA, grading_mode: "guess" }, "instance.grading_mode"],
  [{ ...FREE, prompt: null }, "instance.prompt"],
])("a row that can't be graded is refused at its field", async (row, field) => {
  expect((await failureOf(() => stem.parse(row))).field).toBe(field);
});
