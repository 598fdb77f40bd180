import { expect, test } from "bun:test";
import { LAST_TURN } from "../../src/agent/rules.ts";
import { calls, says } from "../support/fake-engine.ts";
import { setup } from "./setup.ts";

// Each reply of the fake engine has 10 tokens of prompt and 2 that were sampled.
const THINK = (n: number) => calls(["think", { n }]);

test("a rollout ends when its sampled tokens are used up, after the tools of that turn", async () => {
  const script = [THINK(1), THINK(2), THINK(3)];
  const t = setup({ script, rules: { maxSampledTokens: 4 } });
  expect(await t.run()).toEqual({ stopReason: "token_budget", finalMessage: null });
  expect([t.engine.requests.length, t.thoughts.length]).toEqual([2, 2]);
});

test("an answer with the last token of the budget is an answer", async () => {
  const t = setup({ script: [says("Answer: 4")], rules: { maxSampledTokens: 2 } });
  expect((await t.run()).stopReason).toBe("answer");
});

test("a rollout ends when the conversation has as many tokens as it may", async () => {
  const t = setup({ script: [says("hm")], rules: { maxContextTokens: 12 } });
  expect(await t.run()).toEqual({ stopReason: "context", finalMessage: "hm" });
});

test("the model is told of its last turn, where that is asked for", async () => {
  const script = [THINK(1), THINK(2), calls(["finish", { message: "x" }])];
  const t = setup({ script, maxTurns: 3, rules: { forcedFinish: true } });
  expect((await t.run()).stopReason).toBe("finish");
  expect(t.conversation().filter((line) => line.startsWith("user"))).toEqual([
    "user: Go.",
    `user: ${LAST_TURN}`,
  ]);
});
