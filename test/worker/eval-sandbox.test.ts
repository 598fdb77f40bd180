import { describe, expect, test } from "bun:test";
import { ServiceError } from "../../src/errors.ts";
import { math } from "../../src/tasks/math/math.ts";
import type { SandboxPlan } from "../../src/tasks/sandbox-plan.ts";
import { calls, says } from "../support/fake-engine.ts";
import { fakeHandle } from "../support/fake-sandbox.ts";
import { finishedOf, replaced, setup, startOf } from "./setup.ts";

const ANSWER = says("\\boxed{2}");
const CELL = calls(["execute_ipython_cell", { code: "1" }]);
const REFUSED = new ServiceError("sandbox_start_failed", "no user namespaces");
const VERDICT = { reward: 1, rule: "r", reason: "." };

/** Math as if its EVAL worked in a sandbox. */
function evaluatingIn(evaluation: SandboxPlan["evaluation"]): Disposable {
  return replaced(math, "sandboxes", () => ({ agent: true, evaluation, image: null }));
}

describe("an EVAL that works in a fresh sandbox", () => {
  test("gets one that RUN starts when the agent's is being ended", async () => {
    using _ = evaluatingIn("fresh");
    const t = setup([ANSWER]);
    await t.run(startOf("init"));
    t.events.length = 0;
    const { handle, error } = await t.run(startOf("run"));
    expect([handle, error]).toEqual([fakeHandle("s2"), null]);
    expect(new Set(t.specs.map(({ id }) => id)).size).toBe(2);
    expect(t.events).toEqual(["attach s1", "end s1", "start", "tell s2"]);
    const evaluated = await t.run(startOf("eval", { handle }));
    expect(evaluated.verdict?.reward).toBe(1);
    expect(t.events.slice(4)).toEqual(["attach s2", "end s2"]);
  });

  test("gets it as soon as the kind says that the agent is done, and only once", async () => {
    using _ = evaluatingIn("fresh");
    const t = setup();
    using __ = replaced(math, "run", async (_instance, { agentDone, sandbox }) => {
      agentDone();
      agentDone();
      t.events.push(`take from ${sandbox?.handle.id}`);
      return { stop_reason: "done", final_message: null, turns: 0 };
    });
    t.specs.push(...(["agent's"] as never[]));
    expect((await t.run(startOf("run"))).handle).toEqual(fakeHandle("s2"));
    expect(t.events).toEqual(["attach s1", "take from s1", "start", "tell s2", "end s1"]);
  });

  test("starts it itself after a crash, under another name than the agent's", async () => {
    using _ = evaluatingIn("fresh");
    const t = setup();
    await t.run(startOf("init"));
    t.events.length = 0;
    expect((await t.run(startOf("eval", { handle: null }))).verdict?.reward).toBe(1);
    expect(t.events).toEqual(["start", "tell s2", "attach s2", "end s2"]);
    expect(new Set(t.specs.map(({ id }) => id)).size).toBe(2);
    expect(new Set(t.specs.map(({ image }) => image)).size).toBe(1);
  });

  test("has the image, the variables and the limits that the instance asks for", async () => {
    const plan: SandboxPlan = {
      ...{ agent: true, evaluation: "fresh", image: "/images/agent" },
      evaluationImage: "/images/judge",
      ...{ env: { SIDE: "agent" }, evaluationEnv: { SIDE: "judge" } },
      limits: { memoryBytes: 5, diskBytes: 1000 },
    };
    using _ = replaced(math, "sandboxes", () => plan);
    const attached: unknown[] = [];
    const t = setup([ANSWER]);
    const attach = t.parts.attach;
    t.parts.attach = (handle, signal, env) => {
      attached.push(env);
      return attach(handle, signal, env);
    };
    await t.run(startOf("init"));
    const { handle } = await t.run(startOf("run"));
    await t.run(startOf("eval", { handle }));
    expect(
      t.specs.map(({ image, limits }) => [image, limits.memoryBytes, limits.diskBytes]),
    ).toEqual([
      ["/images/agent", 5, 7],
      ["/images/judge", 5, 7],
    ]);
    expect(attached).toEqual([{ SIDE: "agent" }, { SIDE: "agent" }, { SIDE: "judge" }]);
  });

  test("does not cost RUN its outcome when it does not start, and fails by that in EVAL", async () => {
    using _ = evaluatingIn("fresh");
    const start = async () => Promise.reject(REFUSED);
    const t = setup([ANSWER], { driver: { name: "host", start } });
    expect(await t.run(startOf("run"))).toMatchObject({ handle: null, error: null });
    const { error, verdict } = await t.run(startOf("eval", { handle: null }));
    expect([error, verdict]).toEqual([REFUSED.toBody(), null]);
  });

  test("gets none from RUN whose image RUN would have to wait for", async () => {
    using _ = evaluatingIn("fresh");
    const asked: string[] = [];
    const t = setup([ANSWER], { isOnNode: (image) => asked.push(image) === 0 });
    expect(await t.run(startOf("run"))).toMatchObject({ handle: null, error: null });
    expect([asked, t.events]).toEqual([["/images/default"], ["attach s1", "end s1"]]);
    expect((await t.run(startOf("eval", { handle: null }))).verdict?.reward).toBe(1);
  });

  test("that dies under the verifier is the sandbox's failure and no reward", async () => {
    using _ = evaluatingIn("fresh");
    const t = setup();
    using __ = replaced(math, "evaluate", () => {
      queueMicrotask(() => t.sandbox.die(new ServiceError("sandbox_died", "gone")));
      return new Promise(() => {});
    });
    const { error, verdict } = await t.run(startOf("eval"));
    expect([error?.code, verdict]).toEqual(["sandbox_died", null]);
    expect(t.events.at(-1)).toBe("end s1");
  });

  test("that goes beyond a limit is a verdict only where it runs nothing but the policy's code", async () => {
    using _ = evaluatingIn("fresh");
    const t = setup();
    using __ = replaced(math, "evaluate", async () => {
      throw new ServiceError("oom", "8 of 6 bytes");
    });
    const { error, verdict } = await t.run(startOf("eval"));
    expect([error?.code, verdict]).toEqual(["oom", null]);
    using ___ = replaced(math, "limitsAreVerdicts", true);
    const judged = await t.run(startOf("eval"));
    expect([judged.error, judged.verdict?.reward, judged.verdict?.rule]).toEqual([null, 0, "oom"]);
  });

  test("leaves nothing when RUN fails after the agent was done", async () => {
    using _ = evaluatingIn("fresh");
    const t = setup();
    using __ = replaced(math, "run", async (_instance, { agentDone }) => {
      agentDone();
      throw new ServiceError("sandbox_died", "gone while the patch was taken");
    });
    t.specs.push(...(["agent's"] as never[]));
    expect((await t.run(startOf("run"))).handle).toBeNull();
    expect(t.events.slice(-2)).toEqual(["end s1", "end s2"]);
  });
});

test("a sandbox that EVAL shares with the agent is kept by RUN, and ended by EVAL", async () => {
  using _ = evaluatingIn("agent");
  const t = setup([CELL, ANSWER]);
  using __ = replaced(math, "evaluate", async (_instance, _outcome, { sandbox }) => {
    t.events.push(`evaluate in ${sandbox?.handle.id}`);
    return VERDICT;
  });
  const { handle } = await t.run(startOf("run"));
  expect([handle, t.sandbox.detached, t.events]).toEqual([fakeHandle("s1"), true, ["attach s1"]]);
  const evaluated = await t.run(startOf("eval", { handle }));
  expect(evaluated).toEqual({ ...finishedOf("eval"), verdict: VERDICT });
  expect(t.events.slice(1)).toEqual(["attach s1", "evaluate in s1", "end s1"]);
});

test("the row's own image is taken, and the rollout's before it", async () => {
  using _ = replaced(math, "sandboxes", () => ({ agent: true, evaluation: "none", image: "/row" }));
  const t = setup();
  await t.run(startOf("init"));
  await t.run(startOf("init", { options: '{"image":"/rollout"}' }));
  expect(t.specs.map(({ image }) => image)).toEqual(["/row", "/rollout"]);
});
