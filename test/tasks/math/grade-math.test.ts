import { expect, test } from "bun:test";
import { gradeMath } from "../../../src/tasks/math/grade-math.ts";
import { reasoning } from "../../../src/tasks/reasoning/reasoning.ts";
import { failureOf } from "../../support/failure.ts";
import { says } from "../../support/fake-engine.ts";
import { play } from "../../support/play.ts";

const UNREADABLE = "\\int_0^1 f(x)\\,dx";

test("an answer that differs from a truth that can't be compared has no reward", async () => {
  const failure = await failureOf(() => gradeMath("\\boxed{5}", [UNREADABLE]));
  expect(failure).toMatchObject({ code: "truth_unreadable", retryable: false });
  expect((await gradeMath(`\\boxed{${UNREADABLE}}`, [UNREADABLE])).reward).toBe(1);
});

test("nor has one of the kind reasoning, while a plain wrong answer earns 0", async () => {
  const rolloutOf = (truth: string) =>
    play(reasoning, { prompt: "x?", verifier: "math", reward_model: { ground_truth: truth } }, [
      says("\\boxed{5}"),
    ]);
  expect((await failureOf(rolloutOf(UNREADABLE).verdict)).code).toBe("truth_unreadable");
  expect((await rolloutOf("6").verdict()).reward).toBe(0);
});
