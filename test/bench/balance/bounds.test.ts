import { describe, expect, test } from "bun:test";
import { provableBoundMs } from "../../../bench/balance/bounds.ts";
import { play } from "../../../bench/balance/cluster.ts";
import { type Rollout, rolloutsOf, sampledTokens } from "../../../bench/balance/rollouts.ts";
import { POLICIES } from "../../../src/inference/balance/placement.ts";
import type { EngineModel } from "../../../src/simulator/engine-model.ts";
import { presetOf } from "../../../src/simulator/presets.ts";
import { uniform } from "../../../src/simulator/random.ts";

const H100 = presetOf("qwen3-14b@h100");

function played(rollouts: Rollout[], engine: EngineModel, backends = 1): number {
  const rest = { rollouts, engine, backends, slots: rollouts.length };
  return play({ ...rest, policy: "round-robin", moves: false }).makespanMs;
}

/** Without prompts, tools or growth to speak of: what is left is exact. */
function alike(count: number, outputTokens: number, promptTokens: number): Rollout[] {
  return Array.from({ length: count }, (_, index) => ({
    ...{ index, group: `${index}`, promptTokens },
    turns: [{ outputTokens, observationTokens: 0, toolMs: 0 }],
  }));
}

describe("the bound", () => {
  test("is what a single rollout takes", () => {
    const [rollout] = rolloutsOf(1, THIRTY_TURNS, 5) as [Rollout];
    const bound = provableBoundMs({ rollouts: [rollout], engine: H100, backends: 1 });
    // What fills no whole block is computed anew in its next turn.
    expect(played([rollout], H100) / bound).toBeWithin(1, 1.001);
  });

  test("is what equal rollouts take that decode together from their beginning to their end", () => {
    const engine = { ...H100, prefillTokensPerS: 1e9 };
    const rollouts = alike(8, 1_000, 20_000);
    const bound = provableBoundMs({ rollouts, engine, backends: 1 });
    expect(played(rollouts, engine) / bound).toBeWithin(1, 1.001);
  });

  test("is nearly what rollouts take that fill the memory in one wave after another", () => {
    const engine = { ...H100, prefillTokensPerS: 1e9, kvTokens: 100_000 };
    const rollouts = alike(40, 100, 19_700);
    const bound = provableBoundMs({ rollouts, engine, backends: 2 });
    expect(played(rollouts, engine, 2) / bound).toBeWithin(1, 1.02);
  });
});

const THIRTY_TURNS = {
  ...{ fifths: [30, 30, 30, 30, 30, 30], maxTurns: 50, instanceShare: 0.5, samples: 8 },
};

/** Engines, clusters and lengths that are nothing like the benches'. */
function drawn(seed: number) {
  const of = <T>(what: number, ...all: T[]) =>
    all[Math.floor(uniform(seed, what) * all.length)] as T;
  const engine: EngineModel = {
    weightsMs: of(1, 0.5, 5, 11, 50),
    contextMs: of(2, 1e-6, 6e-5, 1e-3),
    prefillTokensPerS: of(3, 2_000, 17_000, 1e6),
    kvTokens: of(4, 45_000, 120_000, 243_530, 1e6),
    maxBatch: of(5, 2, 16, 128),
  };
  const backends = of(6, 1, 2, 3, 5);
  const samples = of(7, 1, 4, 8);
  const fifths = of(8, [1, 1, 2, 3, 5, 60], [3, 4, 10, 19, 31, 99], [20, 20, 20, 20, 20, 20]);
  const skew = { fifths, samples, maxTurns: of(9, 5, 20, 50), instanceShare: uniform(seed, 10) };
  const submitted = rolloutsOf(backends * of(11, 2, 8, 20), skew, seed);
  const length = sampledTokens;
  const rollouts = of(
    12,
    submitted,
    submitted.toSorted((a, b) => length(b) - length(a)),
    submitted.toSorted((a, b) => length(a) - length(b)),
  );
  const schedule = {
    policy: of(13, "least-work", ...POLICIES),
    moves: uniform(seed, 14) < 0.5,
    foresight: uniform(seed, 15) < 0.5,
    slots: backends * of(16, 1, 4, 16, 64),
  };
  return { engine, backends, rollouts, ...schedule };
}

test("no schedule beats the bound, whatever engines, lengths, places and foresight", () => {
  for (let seed = 0; seed < 150; seed++) {
    const given = drawn(seed);
    const { makespanMs } = play(given);
    const bound = provableBoundMs(given);
    if (makespanMs < bound * (1 - 1e-6)) {
      throw new Error(`seed ${seed}: ${makespanMs} ms are less than ${bound} ms`);
    }
  }
});
