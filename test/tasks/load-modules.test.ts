import { expect, test } from "bun:test";
import { resolve } from "node:path";
import { guarded } from "../../src/tasks/guarded.ts";
import { loadTaskModules } from "../../src/tasks/load-modules.ts";
import { taskKindOf } from "../../src/tasks/registry.ts";
import type { TaskKind } from "../../src/tasks/task-kind.ts";
import { failureOf } from "../support/failure.ts";
import { calls } from "../support/fake-engine.ts";
import { play } from "../support/play.ts";
import { evalContext, runContext, TASK_SETTINGS } from "../support/task-context.ts";

const EXAMPLE = resolve(import.meta.dir, "../../scripts/examples/count-words.ts");
const NOTHING = {
  name: "nothing",
  dataSources: ["nothing"],
  needsBackend: false,
  tools: [],
  parse: () => ({}),
  sandboxes: () => ({ agent: false, evaluation: "none", image: null }),
  init: async () => {},
  run: async () => ({ stop_reason: "done", final_message: null, turns: 0 }),
  evaluate: async () => ({ reward: 1, rule: "r", reason: "." }),
} satisfies TaskKind<unknown>;

test("the example's task kind loads, once, and scores", async () => {
  await loadTaskModules([EXAMPLE]);
  await loadTaskModules([EXAMPLE]);
  const kind = taskKindOf("count-words");
  const row = { data_source: "count-words", text: "to be or not to be", word: "be" };
  const verdict = (message: string) => play(kind, row, [calls(["finish", { message }])]).verdict();
  expect(await verdict("It is there 2 times.")).toMatchObject({ reward: 1, rule: "right_count" });
  expect(await verdict("3")).toMatchObject({ reward: 0, rule: "wrong_count" });
  expect(await verdict("often")).toMatchObject({ reward: 0, rule: "no_number" });
  expect(await failureOf(() => kind.parse({ text: 1 }))).toMatchObject({
    code: "invalid_field",
    message: "a row has a text and a word",
    field: "instance",
  });
});

test("what a user's kind throws is told by where it happened, and keeps a code of ours", async () => {
  const fail = (code?: string) => () => {
    throw Object.assign(new Error("no"), code === undefined ? {} : { code });
  };
  const thrown = async (kind: Partial<TaskKind<unknown>>, what: "parse" | "run" | "evaluate") => {
    const guard = guarded({ ...NOTHING, ...kind }, EXAMPLE);
    const outcome = await NOTHING.run();
    const work = {
      parse: () => guard.parse({}),
      run: () => guard.run({}, runContext()),
      evaluate: () => guard.evaluate({}, outcome as never, evalContext()),
    };
    const { code, boundary } = await failureOf(work[what] as never);
    return [code, boundary];
  };
  expect(await thrown({ parse: fail() }, "parse")).toEqual(["invalid_field", "client"]);
  expect(await thrown({ run: fail() }, "run")).toEqual(["task_failed", "task"]);
  expect(await thrown({ evaluate: fail() }, "evaluate")).toEqual(["verifier_failed", "verifier"]);
  expect(await thrown({ run: fail("ENOENT") }, "run")).toEqual(["task_failed", "task"]);
  expect(await thrown({ evaluate: fail("judge_failed") }, "evaluate")).toEqual([
    "judge_failed",
    "verifier",
  ]);
  expect(guarded(NOTHING, EXAMPLE).sandboxes({}, TASK_SETTINGS)).toEqual(NOTHING.sandboxes());
});
