import type { EngineModel } from "../../src/simulator/engine-model.ts";
import type { Rollout } from "./rollouts.ts";

/** What a rollout costs an engine, however it is placed. Units: milliseconds, tokens. */
type Cost = {
  sampledTokens: number;
  /** Computing what its prompts add, and reading its own context in each of its steps. */
  ownMs: number;
  toolMs: number;
  /** Tokens of context, for each step once. */
  readTokens: number;
};

type Cluster = { rollouts: Rollout[]; engine: EngineModel; backends: number; slots: number };

/**
 * What nothing can be faster than: the longest rollout alone on an engine, or all work shared evenly among the engines,
 * with the weights read as rarely as the slots allow. Units: milliseconds.
 */
export function lowerBoundMs({ rollouts, engine, backends, slots }: Cluster): number {
  const costs = costsOf(rollouts, engine);
  const batch = Math.min(engine.maxBatch, slots / backends);
  const total = sum(costs, ({ sampledTokens, ownMs }) => {
    return (sampledTokens * engine.weightsMs) / batch + ownMs;
  });
  return Math.max(longestMs(costs, engine), total / backends);
}

/**
 * A bound that is nearer to what can be had. Contexts in a batch have to fit into memory, so the weights are read at least
 * as often as all reads of contexts fill it. And where a rollout stays on an engine, that makes at least as many steps as
 * it has tokens: so an engine with a long one has less time for others, the least where the longest share one; engines
 * are filled up in this order, and what does not fit any more is divided. Units: milliseconds.
 */
export function tightBoundMs(cluster: Cluster): number {
  const { rollouts, engine, backends } = cluster;
  const costs = costsOf(rollouts, engine).sort((a, b) => b.sampledTokens - a.sampledTokens);
  const fillings = sum(costs, ({ readTokens }) => readTokens) / engine.kvTokens;
  const ownMs = sum(costs, (cost) => cost.ownMs);
  let low = Math.max(lowerBoundMs(cluster), (fillings * engine.weightsMs + ownMs) / backends);
  let high = low * 4;
  for (let round = 0; round < 40; round++) {
    const middle = (low + high) / 2;
    if (fits(costs, middle, backends, engine)) high = middle;
    else low = middle;
  }
  return high;
}

function fits(costs: Cost[], limitMs: number, backends: number, engine: EngineModel): boolean {
  let left = backends;
  let roomMs = 0;
  for (const { sampledTokens, ownMs } of costs) {
    let restMs = ownMs;
    while (restMs > roomMs) {
      if (left === 0) return false;
      left--;
      restMs -= roomMs;
      roomMs = limitMs - sampledTokens * engine.weightsMs;
    }
    roomMs -= restMs;
  }
  return true;
}

function sum(costs: Cost[], of: (cost: Cost) => number): number {
  return costs.reduce((total, cost) => total + of(cost), 0);
}

function longestMs(costs: Cost[], { weightsMs }: EngineModel): number {
  return costs.reduce((longest, { sampledTokens, ownMs, toolMs }) => {
    return Math.max(longest, sampledTokens * weightsMs + ownMs + toolMs);
  }, 0);
}

/** The first prompt is the same for all of a group, so that one of them has to compute it. */
function costsOf(rollouts: Rollout[], engine: EngineModel): Cost[] {
  const groups = new Set<string>();
  return rollouts.map((rollout) => {
    const isFirst = !groups.has(rollout.group);
    groups.add(rollout.group);
    return costOf(rollout, isFirst ? rollout.promptTokens : 0, engine);
  });
}

function costOf({ turns, promptTokens }: Rollout, computed: number, engine: EngineModel): Cost {
  let context = promptTokens;
  let added = computed;
  const cost = { sampledTokens: 0, ownMs: 0, toolMs: 0, readTokens: 0 };
  for (const [index, { outputTokens, observationTokens, toolMs }] of turns.entries()) {
    if (index > 0) context += added;
    cost.ownMs += (added / engine.prefillTokensPerS) * 1000;
    cost.ownMs += engine.contextMs * outputTokens * (context + outputTokens / 2);
    cost.sampledTokens += outputTokens;
    cost.readTokens += outputTokens * (context + outputTokens / 2);
    context += outputTokens;
    added = observationTokens;
    if (index < turns.length - 1) cost.toolMs += toolMs;
  }
  return cost;
}
