import { expect, test } from "bun:test";
import { knownPlaces } from "../../../bench/balance/known-places.ts";
import { OPENHANDS, rolloutsOf, sampledTokens } from "../../../bench/balance/rollouts.ts";
import { presetOf } from "../../../src/simulator/presets.ts";

test("whoever knows all lengths gives each rollout one place, and lets the longest share theirs with less", () => {
  const rollouts = rolloutsOf(64, OPENHANDS, 1);
  const places = knownPlaces(rollouts, presetOf("qwen3-14b@h100"), 4, 0.5);
  expect([...places.keys()].sort((a, b) => a - b)).toEqual(rollouts.map(({ index }) => index));
  const engines = [0, 1, 2, 3].map((at) =>
    rollouts.filter(({ index }) => places.get(index) === at).map(sampledTokens),
  );
  const ends = engines.map((lengths) => ({
    longest: Math.max(...lengths),
    others: lengths.reduce((sum, length) => sum + length, 0) - Math.max(...lengths),
  }));
  ends.sort((a, b) => a.longest - b.longest);
  expect(ends.at(-1)?.others).toBeLessThan(ends[0]?.others ?? 0);
});
