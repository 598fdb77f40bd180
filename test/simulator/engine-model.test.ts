import { expect, test } from "bun:test";
import { EventQueue } from "../../bench/balance/event-queue.ts";
import { OPENHANDS, type Rollout, rolloutsOf } from "../../bench/balance/rollouts.ts";
import { VirtualEngine } from "../../bench/balance/virtual-engine.ts";
import { Batch } from "../../src/simulator/batch.ts";
import { workOf } from "../../src/simulator/batch-request.ts";
import { type EngineModel, msOfSteps, stepsIn } from "../../src/simulator/engine-model.ts";
import { KvCache } from "../../src/simulator/kv-cache.ts";
import { presetOf } from "../../src/simulator/presets.ts";
import { VirtualClock } from "../support/virtual-clock.ts";

const MODEL = presetOf("qwen3-14b@h100");

test("steps take the weights' time each, and the contexts', which grow by a token a request and step", () => {
  const model = { ...MODEL, weightsMs: 10, contextMs: 0.001 };
  const decoding = { requests: 4, contextTokens: 8_000 };
  let stepByStepMs = 0;
  for (let step = 0; step < 500; step++) stepByStepMs += 10 + 0.001 * (8_000 + 4 * step);
  const ms = msOfSteps(model, decoding, 500);
  // The difference is half a token of each request.
  expect(ms).toBeCloseTo(stepByStepMs + 0.001 * 4 * 0.5 * 500);
  expect(stepsIn(model, decoding, ms)).toBeCloseTo(500);
  expect(stepsIn(model, decoding, msOfSteps(model, decoding, 0.3))).toBeCloseTo(0.3);
});

/** What one H100 has left beside the weights of Qwen3-32B. */
const PRESET_32B = Math.floor((0.9 * 80e9 - 2.5e9 - 65.6e9) / (4 * 64 * 8 * 128));

test("a preset is what its GPU's memory and arithmetic give", () => {
  // 29.6 GB of weights and 164 kB a token of context, at 80 % of 3.35 TB/s.
  expect(MODEL.weightsMs).toBeCloseTo(29.6e9 / 2.68e9);
  expect(MODEL.contextMs * 10_000).toBeCloseTo(0.61, 2);
  expect(MODEL.kvTokens).toBeWithin(243_000, 244_000);
  const two = presetOf("qwen3-14b@h100x2");
  expect(two.kvTokens).toBeGreaterThan(2 * MODEL.kvTokens);
  expect(two.weightsMs).toBeWithin(MODEL.weightsMs / 2, MODEL.weightsMs);
  expect([MODEL.maxModelLen, presetOf("qwen3-32b@h100").maxModelLen]).toEqual([40_960, PRESET_32B]);
  // Of a mixture of experts all weights are read, and few compute.
  expect(presetOf("qwen3-30b-a3b@h200").prefillTokensPerS).toBeCloseTo(989e12 / 2 / 6.6e9);
});

test.each([
  ["qwen3-14b", "must be MODEL@GPU"],
  ["qwen3-14b@h100x9", "must be MODEL@GPU"],
  ["gpt-7@h100", "models: qwen3-4b,"],
  ["llama-3.1-70b@h100", "more than the 70 GB that 1 h100"],
])("the preset %s is refused", (name, message) => {
  expect(() => presetOf(name)).toThrow(message);
});

/** Ids such that siblings share their first prompt, and nothing else is alike. */
function idsOf(rollout: Rollout): number[] {
  const group = Number(rollout.group.split(" ")[1]);
  const shared = Array.from({ length: rollout.promptTokens }, (_, at) => group * 100_000 + at);
  const own = rollout.turns.reduce((sum, { outputTokens, observationTokens }) => {
    return sum + outputTokens + observationTokens;
  }, 0);
  return [...shared, ...Array.from({ length: own }, (_, at) => 1e8 + rollout.index * 1e5 + at)];
}

/** Plays whole rollouts on the engine that `rolloutd simulate` serves. */
async function onSimulator(rollouts: Rollout[], model: EngineModel) {
  const clock = new VirtualClock();
  const batch = new Batch(model, new KvCache(model.kvTokens), clock);
  const { signal } = new AbortController();
  let cached = 0;
  const play = async (rollout: Rollout) => {
    const ids = idsOf(rollout);
    let context = rollout.promptTokens;
    for (const { outputTokens, observationTokens, toolMs } of rollout.turns) {
      const promptIds = ids.slice(0, context);
      const outputIds = ids.slice(context, context + outputTokens);
      const done = await batch.run(workOf(promptIds, outputIds, ""), signal);
      cached += done.cachedTokens;
      context += outputTokens + observationTokens;
      await clock.sleep(toolMs);
    }
    return clock.nowMs();
  };
  const endsMs = await clock.play(Promise.all(rollouts.map(play)));
  return { endsMs, cached, preemptions: batch.preemptions };
}

/** And on the one of the benches. */
function onVirtualEngine(rollouts: Rollout[], model: EngineModel) {
  const queue = new EventQueue();
  const engine = new VirtualEngine(model, queue);
  const endsMs: number[] = [];
  for (const { index: owner, group, turns, promptTokens: sharedTokens } of rollouts) {
    const turn = (at: number, tokens: number) => {
      const asked = turns[at];
      if (!asked) {
        endsMs[owner] = queue.nowMs();
        return;
      }
      const { outputTokens, observationTokens, toolMs } = asked;
      engine.call({ owner, group, tokens, sharedTokens }, outputTokens, () => {
        const next = tokens + outputTokens + observationTokens;
        queue.at(queue.nowMs() + toolMs, () => turn(at + 1, next));
      });
    };
    turn(0, sharedTokens);
  }
  queue.run();
  return { endsMs, cached: engine.cachedTokens, preemptions: engine.preemptions };
}

test.each([
  ["room for all", 243_530, false],
  ["contexts that outgrow the memory, of siblings that share their first prompts", 40_960, true],
])(
  "with %s it takes as long as where blocks are counted and not hashed",
  async (_, kvTokens, isShort) => {
    const model = { ...MODEL, kvTokens };
    const rollouts = rolloutsOf(16, OPENHANDS, 3);
    const hashed = await onSimulator(rollouts, model);
    const counted = onVirtualEngine(rollouts, model);
    const ratios = hashed.endsMs.map((ms, index) => ms / (counted.endsMs[index] ?? 0));
    expect([Math.min(...ratios), Math.max(...ratios)]).toEqual([1, 1]);
    expect(hashed.cached / counted.cached).toBeWithin(0.999, 1.001);
    expect([hashed.preemptions > 0, counted.preemptions > 0]).toEqual([isShort, isShort]);
  },
);
