import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { command } from "../../src/tasks/command/command.ts";
import { type Bundle, setup } from "../sandbox/setup.ts";
import { failureOf } from "../support/failure.ts";
import { calls } from "../support/fake-engine.ts";
import { play } from "../support/play.ts";
import { evalContext, TASK_SETTINGS } from "../support/task-context.ts";

const NEVER = new AbortController().signal;
const FINISH = calls(["finish", { message: "done" }]);
const OUTCOME = { stop_reason: "finish", final_message: null, turns: 1 } as const;

let bundle: Bundle;
beforeAll(async () => {
  bundle = await setup("bubblewrap");
});
afterAll(() => bundle[Symbol.asyncDispose]());

function bash(text: string) {
  return calls(["execute_bash", { command: text }]);
}

function rowOf(verifier: Record<string, unknown>, more: Record<string, unknown> = {}) {
  return {
    data_source: "command",
    instruction: "Sort the numbers in numbers.txt into sorted.txt.",
    files: { "/workspace/numbers.txt": "3\n1\n2\n" },
    verifier,
    ...more,
  };
}

const SORTED = { command: "cmp sorted.txt <(sort -n numbers.txt)" };

/** INIT, RUN with `work` in bash, and EVAL, in the sandboxes that the kind plans. */
async function score(row: Record<string, unknown>, work: string) {
  const instance = command.parse(row);
  const agents = await bundle.open();
  await command.init(instance, agents, NEVER);
  const t = play(command, row, [bash(work), FINISH], { sandbox: agents });
  const fresh = command.sandboxes(instance, TASK_SETTINGS).evaluation === "fresh";
  return await t.verdict({ sandbox: fresh ? await bundle.open() : agents });
}

describe("the verifier's command decides", () => {
  test("by its exit code, in the agent's sandbox", async () => {
    expect(await score(rowOf(SORTED), "sort -n numbers.txt > sorted.txt")).toMatchObject({
      reward: 1,
      rule: "exit_zero",
    });
    expect(await score(rowOf(SORTED), "cp numbers.txt sorted.txt")).toMatchObject({
      reward: 0,
      rule: "exit_nonzero",
      details: { exit_code: 1 },
    });
  });

  test("also where the agent guesses what the verifier's output is called", async () => {
    const work = "mkdir -p /tmp/rollout-verifier.log/x; mkfifo /tmp/verifier.log";
    expect(await score(rowOf(SORTED), work)).toMatchObject({ reward: 0, rule: "exit_nonzero" });
  });

  test("by what it prints last, or writes, with files that the agent never saw", async () => {
    const printed = rowOf({
      command: ". /verify/score.sh",
      files: { "/verify/score.sh": "echo checking\necho 0.5" },
      reward: "output",
    });
    expect(await score(printed, "ls /verify")).toMatchObject({
      reward: 0.5,
      rule: "command_output",
    });
    const written = rowOf({
      command: `echo '{"reward": 0.75, "why": "x"}' > /out/reward.json`,
      reward: "file",
      reward_file: "/out/reward.json",
    });
    const more = { setup: "mkdir /out" };
    expect(await score({ ...written, ...more }, "ls")).toMatchObject({
      reward: 0.75,
      rule: "command_file",
    });
  });

  test("on artefacts alone, in a sandbox where the agent was not, prepared as at first", async () => {
    const row = rowOf(
      { command: `test -f numbers.txt -a ! -e /tmp/cheat && ${SORTED.command}` },
      { artefacts: ["/workspace/sorted.txt", "/workspace/folder"] },
    );
    const work = "sort -n numbers.txt > sorted.txt; touch /tmp/cheat; rm numbers.txt";
    expect(await score(row, work)).toMatchObject({ reward: 1 });
    expect(await score(row, "sort -rn numbers.txt > sorted.txt")).toMatchObject({ reward: 0 });
    expect(await score(row, "true")).toMatchObject({ reward: 0 });
    const folder = rowOf(
      { command: "test -x folder/a/run.sh && folder/a/run.sh" },
      { artefacts: ["/workspace/folder"] },
    );
    const script =
      "mkdir -p folder/a && echo 'exit 0' > folder/a/run.sh && chmod +x folder/a/run.sh";
    expect(await score(folder, `${script} && ln -s /etc folder/link`)).toMatchObject({ reward: 1 });
  });
});

describe("cheats earn nothing", () => {
  test("a reward that was written before", async () => {
    const row = rowOf(
      {
        command: "cmp -s sorted.txt <(sort -n numbers.txt) && echo 1 > /out/r || echo 0 > /out/r",
        reward: "file",
        reward_file: "/out/r",
      },
      { setup: "mkdir /out" },
    );
    expect(await score(row, "echo 1 > /out/r; chmod 444 /out/r")).toMatchObject({ reward: 0 });
  });

  test("a process that waits for the verifier", async () => {
    const row = rowOf({ command: "sleep 1; cmp -s sorted.txt <(sort -n numbers.txt)" });
    const later = "sleep 0.3; sort -n numbers.txt > sorted.txt";
    const work = `nohup bash -c '${later}' > /dev/null 2>&1 &`;
    expect(await score(row, work)).toMatchObject({ reward: 0 });
  });

  test("an artefact that is too large, or a link to what is not the agent's", async () => {
    const row = rowOf(SORTED, { artefacts: ["/workspace/sorted.txt"] });
    expect(await score(row, "truncate -s 100M sorted.txt")).toMatchObject({
      reward: 0,
      rule: "artefact_too_large",
    });
  });
});

describe("a verifier without a verdict is a failure", () => {
  test.each([
    ["is not there", { command: "/no/such/verifier" }],
    ["prints no number", { command: "echo fine", reward: "output" }],
    ["writes no reward", { command: "true", reward: "file", reward_file: "/tmp/r" }],
    ["takes too long", { command: "sleep 60", timeout_ms: 200, timeout_is_zero: false }],
  ])("where it %s", async (_what, verifier) => {
    const sandbox = await bundle.open();
    const instance = command.parse(rowOf(verifier));
    await command.init(instance, sandbox, NEVER);
    const evaluation = async () => command.evaluate(instance, OUTCOME, evalContext({ sandbox }));
    const { code, boundary } = await failureOf(evaluation);
    expect([code, boundary]).toEqual(["verifier_failed", "verifier"]);
  });

  test("unless it hangs, and the row does not say that this is its own fault", async () => {
    const row = rowOf({ command: "sleep 60", timeout_ms: 200 });
    expect(await score(row, "true")).toMatchObject({ reward: 0, rule: "verifier_timeout" });
  });

  test("and so is a set-up that fails", async () => {
    const sandbox: Sandbox = await bundle.open();
    const instance = command.parse(rowOf(SORTED, { setup: "echo broken >&2; exit 3" }));
    const { code, message } = await failureOf(() => command.init(instance, sandbox, NEVER));
    expect([code, message]).toEqual(["instance_invalid", expect.stringContaining("broken")]);
  });
});

test.each([
  [{ instruction: "" }, "instance.instruction"],
  [{ verifier: {} }, "instance.verifier.command"],
  [{ verifier: { command: "x", reward: "file" } }, "instance.verifier.reward_file"],
  [{ files: { relative: "x" } }, /^instance\.files/],
  [{ tools: ["hammer"] }, "instance.tools[0]"],
])("a row with %j is refused at its field", async (changes, field) => {
  const failure = await failureOf(() => command.parse(rowOf(SORTED, changes)));
  expect([failure.code, failure.field]).toEqual([
    "invalid_field",
    field instanceof RegExp ? expect.stringMatching(field) : field,
  ]);
});
