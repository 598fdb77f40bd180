import { describe, expect, test } from "bun:test";
import { echo } from "../../src/tasks/echo/echo.ts";
import { failureOf } from "../support/failure.ts";
import { evalContext, runContext, TASK_SETTINGS } from "../support/task-context.ts";

const DONE = { stop_reason: "done", final_message: null, turns: 0 } as const;

describe("echo", () => {
  test("needs neither a sandbox nor a model", () => {
    const plan = echo.sandboxes({}, TASK_SETTINGS);
    expect(plan).toEqual({ agent: false, evaluation: "none", image: null });
    expect([echo.needsBackend, echo.tools]).toEqual([false, []]);
  });

  test("gives the reward that its row names, or 1", async () => {
    const reward = async (row: Record<string, unknown>) =>
      (await echo.evaluate(echo.parse(row), DONE, evalContext())).reward;
    expect([await reward({ reward: 0.25 }), await reward({ reward: 0 }), await reward({})]).toEqual(
      [0.25, 0, 1],
    );
  });

  test("has nothing to do in RUN", async () => {
    expect(await echo.run(echo.parse({}), runContext())).toEqual(DONE);
  });

  test("takes as long as its row says", async () => {
    const startMs = performance.now();
    expect(await echo.run(echo.parse({ run_ms: 30 }), runContext())).toEqual(DONE);
    expect(performance.now() - startMs).toBeGreaterThanOrEqual(29);
  });

  test("a RUN that is aborted while it waits ends with the reason", async () => {
    const abort = new AbortController();
    const run = echo.run(echo.parse({ run_ms: 600_000 }), runContext({ signal: abort.signal }));
    abort.abort("enough");
    expect(await run.catch((reason) => reason)).toBe("enough");
  });

  test.each([
    [{ reward: 1.5 }, "instance.reward"],
    [{ reward: -0.1 }, "instance.reward"],
    [{ reward: "1" }, "instance.reward"],
    [{ run_ms: -1 }, "instance.run_ms"],
    [{ run_ms: 0.5 }, "instance.run_ms"],
  ])("a row with %j is refused at its field", async (row, field) => {
    const { code, field: named } = await failureOf(() => echo.parse(row));
    expect([code, named]).toEqual(["invalid_field", field]);
  });
});
