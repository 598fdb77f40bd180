import { describe, expect, test } from "bun:test";
import { TextDialogue } from "../../../src/agent/text-dialogue.ts";
import { ServiceError } from "../../../src/errors.ts";
import type { Message, ToolSchema } from "../../../src/inference/engine.ts";
import type { RolloutOptions } from "../../../src/protocol/rollout.ts";
import { math } from "../../../src/tasks/math/math.ts";
import { Recorder } from "../../../src/trajectory/recorder.ts";
import { failureOf } from "../../support/failure.ts";
import type { Scripted } from "../../support/fake-engine.ts";
import { BACKEND, calls, FakeEngine, says } from "../../support/fake-engine.ts";
import { FakeSandbox } from "../../support/fake-sandbox.ts";
import { evalContext, runContext } from "../../support/task-context.ts";

const INSTANCE = { problem: "What is 1+1?", truths: ["2", "7"] };

function setup(script: Scripted[] = [], options: RolloutOptions = {}) {
  const sandbox = new FakeSandbox();
  const engine = new FakeEngine(script);
  const recorder = new Recorder("j", 1);
  const { signal } = new AbortController();
  const limits = { callTimeoutMs: 1234, maxReplyBytes: 5678 };
  const sampling = options.sampling ?? {};
  const call = { jobId: "j", engine, backend: BACKEND, sampling, ...limits };
  const converse = async (prompt: Message[], tools: ToolSchema[]) =>
    new TextDialogue(prompt, { ...call, tools });
  const context = runContext({ options, sandbox, converse, recorder, signal });
  return {
    sandbox,
    engine,
    signal,
    init: () => math.init(INSTANCE, sandbox, signal),
    run: () => math.run(INSTANCE, { ...context, backendId: BACKEND.id }),
    toolNames: () => engine.requests[0]?.tools.map((tool) => tool.function.name),
  };
}

describe("INIT", () => {
  test("loads what every rollout needs, so that the first cell is quick", async () => {
    const t = setup();
    await t.init();
    expect(t.sandbox.cells.map(({ text }) => text.match(/\b(numpy|sympy)\b/g))).toEqual([
      ["numpy", "sympy"],
    ]);
    expect(t.sandbox.cells[0]?.signal).toBe(t.signal);
  });

  test("that takes too long on a busy node may succeed on another try", async () => {
    const t = setup();
    t.sandbox.onCell = async () => ({ ok: false, timedOut: true });
    expect(await failureOf(t.init)).toMatchObject({
      code: "sandbox_start_failed",
      retryable: true,
    });
  });

  test("fails on an image without numpy, and says what is missing", async () => {
    const t = setup();
    const output = "ModuleNotFoundError: No module named 'numpy'";
    t.sandbox.onCell = async () => ({ ok: false, output });
    expect(await failureOf(t.init)).toEqual({
      code: "image_invalid",
      message: `the image lacks what math needs: ${output}`,
      boundary: "sandbox",
      retryable: false,
      mend: "use an image with Python 3, numpy and sympy",
    });
  });
});

describe("RUN", () => {
  test("computes in the sandbox, sees the output, and ends with a boxed answer", async () => {
    const t = setup([calls(["execute_ipython_cell", { code: "1 + 1" }]), says("\\boxed{2}")]);
    t.sandbox.onCell = async () => ({ output: "2\n" });
    const outcome = { stop_reason: "answer", final_message: "\\boxed{2}", turns: 2 } as const;
    expect(await t.run()).toEqual(outcome);
    expect(t.engine.requests[1]?.messages.at(-1)).toEqual({
      role: "tool",
      content: "2",
      tool_call_id: "call_0",
    });
  });

  test("puts the problem and how to answer it before the model, with the kind's own tools", async () => {
    const t = setup([calls(["finish", { message: "\\boxed{2}" }])]);
    expect(await t.run()).toMatchObject({ stop_reason: "finish", final_message: "\\boxed{2}" });
    const messages = t.engine.requests[0]?.messages ?? [];
    expect(messages.map(({ role }) => role)).toEqual(["system", "user"]);
    expect(messages[1]?.content).toEndWith(`Problem:\n${INSTANCE.problem}`);
    expect(messages[1]?.content).toContain("\\boxed{...}");
    expect(t.toolNames()).toEqual(["execute_ipython_cell", "think", "finish"]);
    expect(t.engine.requests[0]).toMatchObject({
      sampling: {},
      timeoutMs: 1234,
      maxReplyBytes: 5678,
      sessionId: "j",
    });
  });

  test("a message without a box is no answer", async () => {
    const t = setup([says("The answer is 2."), says("I mean \\boxed{2}")]);
    expect(await t.run()).toMatchObject({ final_message: "I mean \\boxed{2}", turns: 2 });
  });

  test("what a rollout asks for wins over the kind's own", async () => {
    const script = [calls(["execute_bash", { command: "ls" }]), says("never asked for")];
    const t = setup(script, {
      sampling: { seed: 7 },
      agent: { max_turns: 1, tool_timeout_ms: 50, tool_quiet_ms: 9, tools: ["execute_bash"] },
    });
    expect(await t.run()).toEqual({ stop_reason: "max_turns", final_message: null, turns: 1 });
    expect(t.engine.requests.map(({ sampling }) => sampling)).toEqual([{ seed: 7 }]);
    expect(t.toolNames()).toEqual(["execute_bash"]);
    expect(t.sandbox.commands).toMatchObject([{ timeoutMs: 50, quietMs: 9 }]);
  });

  test("an engine's failure is the rollout's", async () => {
    const down = async () => {
      throw new ServiceError("engine_timeout", "too slow");
    };
    expect((await failureOf(setup([down]).run)).code).toBe("engine_timeout");
  });
});

describe("EVAL", () => {
  const reward = async (final_message: string | null) => {
    const outcome = { stop_reason: "answer", final_message, turns: 1 } as const;
    const verdict = await math.evaluate(INSTANCE, outcome, evalContext());
    return [verdict.reward, verdict.rule];
  };

  test("rewards any of the accepted answers", async () => {
    expect(await reward("So \\boxed{2.0}")).toEqual([1, "equal_number"]);
    expect(await reward("So \\boxed{7}")).toEqual([1, "equal_string"]);
  });

  test("gives nothing for a formula of the problem", async () => {
    expect(await reward("So \\boxed{1+1}")).toEqual([0, "copied_question"]);
  });

  test("gives nothing for a wrong answer, none in a box, or none at all, and tells them apart", async () => {
    const rewards = [await reward("\\boxed{3}"), await reward("2"), await reward(null)];
    expect(rewards).toEqual([
      [0, "not_equal"],
      [0, "no_boxed_answer"],
      [0, "no_answer"],
    ]);
  });
});
