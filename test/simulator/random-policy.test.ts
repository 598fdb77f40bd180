import { expect, test } from "bun:test";
import { draw, randomTurn } from "../../src/simulator/random-policy.ts";

const POLICY = {
  kind: "random" as const,
  seed: 1,
  turns: { median: 8, sigma: 0.5 },
  tokens: { median: 100, sigma: 1 },
  call: { name: "bash", arguments: "{}" },
};

/** How many turns a rollout has: the first without a call ends it. */
function turnsOf(asked: string, seed: number): number {
  for (let turn = 0; ; turn++) {
    if (randomTurn(POLICY, asked, seed, turn).toolCalls.length === 0) return turn + 1;
  }
}

test("a rollout is the same whenever it is run, and another seed or prompt makes another", () => {
  expect(randomTurn(POLICY, "a", 3, 2)).toEqual(randomTurn(POLICY, "a", 3, 2));
  const said = ["a", "b"].flatMap((asked) =>
    [1, 2].map((seed) => randomTurn(POLICY, asked, seed, 0)),
  );
  expect(new Set(said.map(({ content }) => content)).size).toBe(4);
});

test("turns and tokens have the median that was asked for", () => {
  const lengths = Array.from({ length: 999 }, (_, seed) => turnsOf("a", seed)).sort(
    (a, b) => a - b,
  );
  expect(lengths[499]).toBeWithin(7, 10);
  expect(lengths[998]).toBeGreaterThan(20);
  const tokens = Array.from({ length: 999 }, (_, seed) => draw(POLICY.tokens, seed)).sort(
    (a, b) => a - b,
  );
  expect(tokens[499]).toBeWithin(85, 118);
});

test("without a spread every rollout is as long", () => {
  const even = { ...POLICY, turns: { median: 3, sigma: 0 }, tokens: { median: 20, sigma: 0 } };
  const calls = [0, 1, 2].map((turn) => randomTurn(even, "a", 5, turn));
  expect(calls.map(({ toolCalls }) => toolCalls.length)).toEqual([1, 1, 0]);
  expect(calls.map(({ content }) => content?.length)).toEqual([20, 20, 20]);
});
