import { expect, test } from "bun:test";
import { logprobsModeOf } from "../../src/inference/logprobs-mode.ts";

/** Log-probability of the largest of these logits, at a temperature. */
function best(logits: number[], temperature: number): number {
  const scaled = logits.map((logit) => logit / temperature);
  const top = Math.max(...scaled);
  return -Math.log(scaled.reduce((sum, logit) => sum + Math.exp(logit - top), 0));
}

const UNSURE = [2, 1.5, 1, 0, -1, -3];
const SURE = [40, 1, 0];

test.each([
  ["raw", UNSURE, (logits: number[]) => best(logits, 1)],
  ["temperature", UNSURE, (logits: number[]) => best(logits, 2)],
  ["processed", UNSURE, () => 0],
  [null, SURE, (logits: number[]) => best(logits, 1)],
  [null, SURE, () => 0],
] as const)("%p", (mode, logits, telling) => {
  expect(logprobsModeOf(best([...logits], 1), telling([...logits]))).toBe(mode);
});

test("the noise of other batch sizes changes nothing, and what can't be is not explained", () => {
  expect(logprobsModeOf(-2.31, -2.29)).toBe("raw");
  expect(logprobsModeOf(-2.31, -1.2)).toBeNull();
});
