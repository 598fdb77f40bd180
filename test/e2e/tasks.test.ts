import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import type { RolloutView } from "../../src/protocol/view.ts";
import {
  environment,
  mathRow,
  run,
  type Service,
  sandboxFlags,
  serve,
  simulate,
  turn,
} from "../support/binary.ts";
import { jsonServer } from "../support/json-server.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const EXAMPLE = resolve(import.meta.dir, "../../scripts/examples/count-words.ts");
const base64 = (text: string) => Buffer.from(text).toString("base64");
const DOUBLE = "print(2 * int(input()))";

/** A row of each kind, what a right and a wrong policy do, and why that is so. */
const KINDS: Record<
  string,
  { row: (problem: string) => Record<string, unknown>; right: unknown[]; wrong: unknown[] }
> = {
  math: {
    row: (problem) => mathRow(problem, "2"),
    right: [
      turn("execute_ipython_cell", { code: "1+1" }),
      turn("finish", { message: "\\boxed{2}" }),
    ],
    wrong: [turn("finish", { message: "\\boxed{3}" })],
  },
  code: {
    row: (problem) => ({
      data_source: "deepcoder_taco",
      prompt: [{ role: "user", content: problem }],
      reward_model: { ground_truth: '{"inputs": ["1", "21"], "outputs": ["2", "42"]}' },
    }),
    right: [
      turn("execute_bash", {
        command: `echo '${DOUBLE}' > solution.py && echo 4 | python3 solution.py`,
      }),
      turn("finish", { message: "It is in the file." }),
    ],
    wrong: [
      turn("execute_bash", {
        command: "echo 'print(2)' > /workspace/solution.py; touch /tmp/tests",
      }),
      turn("finish", { message: "done" }),
    ],
  },
  stem: {
    row: (problem) => ({
      data_source: "mcqa",
      prompt: problem,
      options: ["grass", "sky"],
      expected_answer: "B",
    }),
    right: [turn("think", { thought: "hm" }), turn("finish", { message: "\\boxed{B}" })],
    wrong: [turn("finish", { message: "\\boxed{A}" })],
  },
  judged: {
    row: (problem) => ({
      data_source: "stem",
      prompt: problem,
      reward_model: { ground_truth: "H2O" },
    }),
    right: [turn("finish", { message: "\\boxed{water}" })],
    wrong: [turn("finish", { message: "\\boxed{salt}" })],
  },
  instructions: {
    row: (problem) => ({
      data_source: "if_eval",
      prompt: problem,
      instruction_id_list: ["punctuation:no_comma"],
    }),
    right: [{ content: "none here" }],
    wrong: [{ content: "one, here" }],
  },
  program: {
    row: (problem) => ({
      data_source: "rStar",
      prompt: problem,
      reward_model: { ground_truth: [{ input: "4", output: "8" }] },
    }),
    right: [{ content: `\`\`\`python\n${DOUBLE}\n\`\`\`` }],
    wrong: [{ content: "```python\nprint(4)\n```" }],
  },
  command: {
    row: (instruction) => ({
      data_source: "command",
      instruction,
      setup: "echo secret > name.txt",
      verifier: { command: 'test "$(cat copy.txt)" = secret' },
    }),
    right: [
      turn("execute_bash", { command: "cp name.txt copy.txt" }),
      turn("finish", { message: "" }),
    ],
    wrong: [turn("finish", { message: "copied" })],
  },
  artefact: {
    row: (instruction) => ({
      data_source: "command",
      instruction,
      artefacts: ["/workspace/out.txt"],
      verifier: { command: "test ! -e /tmp/mark && cat out.txt", reward: "output" },
    }),
    right: [
      turn("execute_bash", { command: "touch /tmp/mark; echo 1 > out.txt" }),
      turn("finish", { message: "" }),
    ],
    wrong: [turn("execute_bash", { command: "echo 0 > out.txt" }), turn("finish", { message: "" })],
  },
  harbor: {
    row: (instruction) => ({
      data_source: "terminal-bench",
      instruction,
      task_toml: 'version = "1.0"\n[verifier]\ntimeout_sec = 30.0\n',
      workdir: "/home/user",
      tests: {
        "test.sh": base64(
          "pytest -q /tests/test_outputs.py\necho $((1 - $?)) >/logs/verifier/reward.txt\n",
        ),
        "test_outputs.py": base64(
          "def test_it():\n    assert open('/home/user/out.txt').read() == 'done\\n'\n",
        ),
      },
    }),
    right: [
      turn("execute_bash", { command: "echo done > out.txt" }),
      turn("finish", { message: "" }),
    ],
    wrong: [
      turn("execute_bash", {
        command: "mkdir -p /logs/verifier; echo 1 > /logs/verifier/reward.txt",
      }),
      turn("finish", { message: "" }),
    ],
  },
  http: {
    row: (problem) => ({
      data_source: "http",
      prompt: problem,
      reward_model: { ground_truth: "2" },
    }),
    right: [turn("finish", { message: "2" })],
    wrong: [turn("finish", { message: "3" })],
  },
  "count-words": {
    row: (text) => ({ data_source: "count-words", text, word: "word" }),
    right: [
      turn("execute_bash", { command: "wc -w /workspace/text.txt" }),
      turn("finish", { message: "It is there 2 times." }),
    ],
    wrong: [turn("finish", { message: "5" })],
  },
};

const PROBLEM = (name: string, how: string) => `word word ${name}-${how}`;
const dir = tempDir();
let service: Service;
let engine: Awaited<ReturnType<typeof simulate>>;
let broken = false;
const servers = jsonServer(
  (path, body: { solution_str?: string; messages?: { content: string }[] }) => {
    if (broken) return new Response("down", { status: 500 });
    if (path === "/compute_score") return { score: body.solution_str === "2" };
    const content = /water/.test(body.messages?.[0]?.content ?? "") ? "[[A=B]]" : "[[A!=B]]";
    return { choices: [{ message: { content } }] };
  },
);

beforeAll(async () => {
  const scripts = Object.entries(KINDS).flatMap(([name, { right, wrong }]) => [
    { match: PROBLEM(name, "right"), variants: [right] },
    { match: PROBLEM(name, "wrong"), variants: [wrong] },
  ]);
  // The example's prompt has the word alone, and not the text that is asked about.
  const { right = [], wrong = [] } = KINDS["count-words"] ?? {};
  scripts.push({ match: "the word word in", variants: [right] });
  scripts.push({ match: "the word other in", variants: [wrong] });
  engine = await simulate(dir.path, scripts);
  service = await serve(dir.file("data"), [
    ...sandboxFlags(),
    ...["--driver", "bubblewrap", "--bwrap", environment("ROLLOUTD_BWRAP")],
    ...["--backend", engine.url, "--tasks", EXAMPLE, "--reward-servers", servers.url],
    ...["--judge-url", `${servers.url}/v1`, "--judge-model", "judge", "--num-attempts", "1"],
  ]);
});
afterAll(async () => {
  await service[Symbol.asyncDispose]();
  await engine[Symbol.asyncDispose]();
  servers[Symbol.dispose]();
  dir[Symbol.dispose]();
});

async function rollout(instance: Record<string, unknown>): Promise<RolloutView> {
  const body = JSON.stringify({ instance });
  const response = await fetch(`${service.url}/v1/rollouts?wait_ms=60000`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  return (await response.json()) as RolloutView;
}

function rowOf(name: string, how: "right" | "wrong") {
  const row = KINDS[name]?.row(PROBLEM(name, how)) ?? {};
  return name === "count-words" && how === "wrong" ? { ...row, word: "other" } : row;
}

describe("each kind, through the binary with the simulated engine", () => {
  test.each(Object.keys(KINDS))(
    "%s: a right answer earns 1, a wrong one 0",
    async (name) => {
      const [right, wrong] = await Promise.all([
        rollout(rowOf(name, "right")),
        rollout(rowOf(name, "wrong")),
      ]);
      expect([right.error, wrong.error]).toEqual([null, null]);
      expect([right.reward, wrong.reward]).toEqual([1, 0]);
      expect(right.verdict?.rule).toBeString();
    },
    60_000,
  );
});

test("where a judge or a reward server is down there is no reward, but whose failure it was", async () => {
  broken = true;
  const [judged, scored] = await Promise.all([
    rollout(rowOf("judged", "wrong")),
    rollout(rowOf("http", "right")),
  ]);
  broken = false;
  expect(
    [judged, scored].map(({ reward, error }) => [
      reward,
      error?.code,
      error?.stage,
      error?.boundary,
    ]),
  ).toEqual([
    [null, "judge_failed", "eval", "verifier"],
    [null, "reward_server_failed", "eval", "verifier"],
  ]);
}, 60_000);

test("what RUN left is scored again without the model, in another fresh sandbox", async () => {
  const { id } = await rollout(rowOf("code", "right"));
  const { stdout, exitCode } = await run([
    "jobs",
    "rescore",
    id,
    "--server",
    service.url,
    "--json",
  ]);
  const [view] = JSON.parse(stdout) as [RolloutView];
  expect([exitCode, view.rescore_of, view.reward]).toEqual([0, id, 1]);
  expect([view.timings.init.active_ms, view.timings.run.active_ms]).toEqual([0, 0]);
}, 60_000);

test("after kill -9 in EVAL the tests run again in a fresh sandbox, and the model is not asked again", async () => {
  const slow = "import time\ntime.sleep(1.5)\nprint(2 * int(input()))";
  using own = tempDir();
  const answer = turn("finish", { message: `\`\`\`python\n${slow}\n\`\`\`` });
  await using model = await simulate(own.path, [{ match: "slowly", variants: [[answer]] }]);
  const sandboxes = [...sandboxFlags(), "--driver", "bubblewrap"];
  sandboxes.push("--bwrap", environment("ROLLOUTD_BWRAP"));
  const row = { ...KINDS.code?.row("Double slowly."), grading: "all" };
  const submit = (to: Service) =>
    fetch(`${to.url}/v1/rollouts`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ id: "a", instance: row }),
    });
  const viewAt = async (to: Service, query = "") =>
    (await (await fetch(`${to.url}/v1/rollouts/a${query}`)).json()) as RolloutView;
  {
    const first = await serve(own.file("data"), [...sandboxes, "--backend", model.url]);
    await submit(first);
    await waitFor(async () => {
      const { stage, state } = await viewAt(first);
      return stage === "eval" && state === "active";
    }, "EVAL");
    first.signal("SIGKILL");
    await first.exited;
  }
  // It has no backend, so that RUN could not be done again.
  await using second = await serve(own.file("data"), sandboxes);
  expect(await viewAt(second, "?wait_ms=60000")).toMatchObject({
    state: "succeeded",
    reward: 1,
    attempt: 2,
  });
}, 60_000);

test("a row that a kind of the user's refuses costs nobody anything", async () => {
  const refused = await fetch(`${service.url}/v1/rollouts`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ instance: { data_source: "count-words", text: 1 } }),
  });
  const { error } = (await refused.json()) as { error: { field: string } };
  expect([refused.status, error.field]).toEqual([400, "instance"]);
});
