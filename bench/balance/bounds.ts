import type { EngineModel } from "../../src/simulator/engine-model.ts";
import type { Rollout } from "./rollouts.ts";

/** What a rollout costs an engine, however it is placed. Units: milliseconds, tokens. */
export type Cost = {
  sampledTokens: number;
  /** Computing what its prompts add. */
  prefillMs: number;
  /** Reading its own context in each of its steps. */
  readMs: number;
  /** The square roots of those times, for all of its steps together: at most so much. */
  rootMs: number;
  toolMs: number;
};

type Cluster = { rollouts: Rollout[]; engine: EngineModel; backends: number; slots: number };

/**
 * The longest rollout alone on an engine, or all work shared evenly among the engines, with the weights read as rarely as
 * the slots allow. Units: milliseconds.
 */
export function lowerBoundMs({ rollouts, engine, backends, slots }: Cluster): number {
  const costs = costsOf(rollouts, engine);
  const batch = Math.min(engine.maxBatch, slots / backends);
  const total = sum(costs, ({ sampledTokens, prefillMs, readMs }) => {
    return (sampledTokens * engine.weightsMs) / batch + prefillMs + readMs;
  });
  return Math.max(longestMs(costs, engine), total / backends);
}

/**
 * What no schedule is faster than, also one that knows all lengths, moves rollouts for nothing and makes them wait as it
 * likes. Units: milliseconds.
 *
 * A step reads the weights once, in `weightsMs`, and all contexts of its batch, in `r1 + r2 + ...`. Let each in the batch pay
 * for the weights by its part of these reads: with `q` for their sum, rollout i pays `weightsMs * ri / q`. Two things keep that
 * from being little:
 * - The contexts of a batch lie in memory, so `q` is at most what a full memory takes to read.
 * - Who is done by T has spent no more than T on its own prompts, its tools and its steps. So the sum of `q` over its steps
 *   is at most `spare = T - prefill - tools - steps * weightsMs`, and by Cauchy and Schwarz
 *   `sum(ri / q) >= sum(sqrt(ri))^2 / sum(q) >= sum(sqrt(ri))^2 / spare`.
 *   Whoever is to be done early has a batch almost to itself, and pays for the weights almost alone.
 *
 * The engines have T each for what all pay, for the reads and for the prompts. The longer T is the less is to be
 * paid, so the bound is the shortest T in which it can be, found by halving.
 */
export function provableBoundMs({ rollouts, engine, backends }: Omit<Cluster, "slots">): number {
  const costs = costsOf(rollouts, engine);
  const largest = Math.max(engine.kvTokens, ...rollouts.map(contextOf));
  const fullMs = engine.contextMs * largest;
  const tokens = sum(costs, ({ sampledTokens }) => sampledTokens);
  const ownMs = sum(costs, ({ prefillMs, readMs }) => prefillMs + readMs);
  const isEnough = (limitMs: number) => {
    const paid = sum(costs, ({ sampledTokens, prefillMs, readMs, rootMs, toolMs }) => {
      const spareMs = limitMs - prefillMs - toolMs - sampledTokens * engine.weightsMs;
      return Math.max(readMs / fullMs, rootMs ** 2 / spareMs);
    });
    const steps = Math.max(paid, tokens / engine.maxBatch);
    return steps * engine.weightsMs + ownMs <= backends * limitMs;
  };
  // Alone each rollout spends all that it has to spare on itself.
  let low = longestMs(costs, engine);
  if (isEnough(low)) return low;
  let high = 2 * low;
  while (!isEnough(high)) high *= 2;
  for (let round = 0; round < 40; round++) {
    const middle = (low + high) / 2;
    if (isEnough(middle)) high = middle;
    else low = middle;
  }
  return low;
}

function sum(costs: Cost[], of: (cost: Cost) => number): number {
  return costs.reduce((total, cost) => total + of(cost), 0);
}

function longestMs(costs: Cost[], { weightsMs }: EngineModel): number {
  return costs.reduce((longest, { sampledTokens, prefillMs, readMs, toolMs }) => {
    return Math.max(longest, sampledTokens * weightsMs + prefillMs + readMs + toolMs);
  }, 0);
}

/**
 * The first prompt is the same for all of a group, so that one of them has to compute it. Whichever that is: none can
 * decode before, so that it may be counted to the first.
 */
export function costsOf(rollouts: Rollout[], engine: EngineModel): Cost[] {
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
  const cost = { sampledTokens: 0, prefillMs: 0, readMs: 0, rootMs: 0, toolMs: 0 };
  for (const [index, { outputTokens, observationTokens, toolMs }] of turns.entries()) {
    if (index > 0) context += added;
    cost.prefillMs += (added / engine.prefillTokensPerS) * 1000;
    cost.sampledTokens += outputTokens;
    cost.readMs += engine.contextMs * outputTokens * (context + outputTokens / 2);
    // A root's curve lies above the line between two of its points.
    const roots = Math.sqrt(context) + Math.sqrt(context + outputTokens);
    cost.rootMs += (outputTokens * Math.sqrt(engine.contextMs) * roots) / 2;
    context += outputTokens;
    added = observationTokens;
    if (index < turns.length - 1) cost.toolMs += toolMs;
  }
  return cost;
}

function contextOf({ turns, promptTokens }: Rollout): number {
  return turns.reduce(
    (sum, turn) => sum + turn.outputTokens + turn.observationTokens,
    promptTokens,
  );
}
