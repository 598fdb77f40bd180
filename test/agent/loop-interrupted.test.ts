import { expect, test } from "bun:test";
import { ServiceError } from "../../src/errors.ts";
import { failureOf } from "../support/failure.ts";
import { calls, neverAnswers, says } from "../support/fake-engine.ts";
import { setup } from "./setup.ts";

const CANCELLED = new ServiceError("cancelled", "cancelled");
const SO_FAR = ["user: Go.", "assistant: ", "tool: noted"];

test("an abort inside a model call ends it with the reason, and what was recorded stays", async () => {
  const t = setup({
    script: [
      calls(["think", {}]),
      (signal) => {
        queueMicrotask(() => t.abort.abort(CANCELLED));
        return neverAnswers(signal);
      },
    ],
  });
  expect(await t.run().catch((error) => error)).toBe(CANCELLED);
  expect(t.conversation()).toEqual(SO_FAR);
  expect(t.trajectory()).toMatchObject({ stop_reason: null, turns: [{ message: 1 }] });
});

test("a reply that comes at the same time as the abort is recorded, and its tools do not run", async () => {
  const t = setup({
    script: [
      async () => {
        t.abort.abort(CANCELLED);
        return calls(["think", {}]);
      },
    ],
  });
  expect(await t.run().catch((error) => error)).toBe(CANCELLED);
  expect([t.conversation(), t.thoughts]).toEqual([["user: Go.", "assistant: "], []]);
});

test("an abort inside a tool ends the rollout, and what the tool still says is not recorded", async () => {
  const t = setup({
    script: [calls(["think", {}], ["think", {}])],
    think: async () => {
      if (t.thoughts.length === 2) t.abort.abort(CANCELLED);
      return { text: "noted", ok: true };
    },
  });
  expect(await t.run().catch((error) => error)).toBe(CANCELLED);
  expect(t.conversation()).toEqual(SO_FAR);
});

test("a finish that comes after the abort is no end of the rollout", async () => {
  const t = setup({
    script: [calls(["think", {}], ["finish", { message: "4" }])],
    think: async () => ({ text: "noted", ok: true }),
  });
  const [, finish] = t.tools;
  if (!finish) throw new Error("the setup has no finish tool");
  finish.run = async () => {
    t.abort.abort(CANCELLED);
    return { text: "", ok: true, finish: "4" };
  };
  expect(await t.run().catch((error) => error)).toBe(CANCELLED);
  expect(t.trajectory().stop_reason).toBeNull();
});

test("an engine that fails ends the rollout with its error, and what was recorded stays", async () => {
  const down = new ServiceError("engine_unreachable", "connection refused");
  const t = setup({
    script: [
      calls(["think", {}]),
      async () => {
        throw down;
      },
    ],
  });
  expect(await t.run().catch((error) => error)).toBe(down);
  expect(t.conversation()).toEqual(SO_FAR);
});

test("a sandbox that dies under a tool ends the rollout: that is no observation", async () => {
  const died = new ServiceError("sandbox_died", "gone");
  const t = setup({
    script: [calls(["think", {}]), says("Answer: 4")],
    think: async () => {
      throw died;
    },
  });
  expect(await t.run().catch((error) => error)).toBe(died);
  expect(t.conversation()).toEqual(["user: Go.", "assistant: "]);
});

test("a message that the engine broke off is no answer, but is in the record", async () => {
  const t = setup({ script: [{ ...says("It is \\boxed{4}"), finishReason: "abort" }] });
  expect((await failureOf(() => t.run())).code).toBe("engine_aborted");
  expect(t.conversation().at(-1)).toBe("assistant: It is \\boxed{4}");
});

test("what had come of an answer that was broken off for good is in the record, and no answer", async () => {
  const down = new ServiceError("engine_unreachable", "the connection was lost");
  const t = setup({ script: [calls(["think", {}]), () => Promise.reject(down)] });
  t.engine.beforeFailure = { ...says("It is \\boxed{4}"), finishReason: "abort", lostTokens: 7 };
  expect(await t.run().catch((error) => error)).toBe(down);
  expect(t.conversation().at(-1)).toBe("assistant: It is \\boxed{4}");
  const { turns, stop_reason } = t.trajectory();
  expect(turns.at(-1)).toMatchObject({ finish_reason: "abort", lost_tokens: 7 });
  expect(stop_reason).toBeNull();
});
