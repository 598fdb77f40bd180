import type { EngineModel } from "../../src/simulator/engine-model.ts";
import type { Rollout } from "./rollouts.ts";

/** What a rollout costs an engine, however it is placed. Units: milliseconds, tokens. */
export type Cost = {
  sampledTokens: number;
  /** Computing what its prompts add. */
  prefillMs: number;
  /** Reading its own context in each of its steps. */
  readMs: number;
  /** Reading what it holds of the memory: of the first prompt that its siblings hold with it its part, in each of its steps. */
  heldMs: number;
  /** The square roots of those times, for all of its steps together: at most so much. */
  rootMs: number;
  toolMs: number;
};

type Cluster = { rollouts: Rollout[]; engine: EngineModel; backends: number };

/**
 * What batches are held against: the longest rollout alone on an engine, or all work shared evenly among the engines, each with a full
 * memory from its first step to its last, so that the weights are read as rarely as can be. Units: milliseconds.
 */
export function lowerBoundMs({ rollouts, engine, backends }: Cluster): number {
  const costs = costsOf(rollouts, engine);
  const fullMs = fullMsOf(rollouts, engine);
  const workMs = workMsOf(costs, engine, ({ heldMs }) => heldMs / fullMs);
  return Math.max(longestMs(costs, engine), workMs / backends);
}

/**
 * What no schedule is faster than, also one that knows all lengths, moves rollouts for nothing and makes them wait as it
 * likes. Units: milliseconds.
 *
 * A step reads the weights once, in `weightsMs`, and all contexts of its batch. Let each in the batch pay for the weights by
 * what it holds of the memory, in the time that reading it takes: with `q` for the sum of these, rollout i pays
 * `weightsMs * hi / q`. A first prompt is held once, and its siblings, of whom at most all are in the batch, have each their
 * part of it. Two things keep what is paid from being little:
 * - The contexts of a batch lie in memory, so `q` is at most what a full memory takes to read.
 * - Who is done by T has spent no more than T on its own prompts, its tools and its steps, and a step takes
 *   `weightsMs + q` at least. So the sum of `q` over its steps is at most `spare = T - prefill - tools - steps * weightsMs`,
 *   and by Cauchy and Schwarz `sum(hi / q) >= sum(sqrt(hi))^2 / sum(q) >= sum(sqrt(hi))^2 / spare`.
 *   Whoever is to be done early has a batch almost to itself, and pays for the weights almost alone.
 *
 * The engines have T each for what all pay, for the reads and for the prompts. The longer T is the less is to be
 * paid, so the bound is the shortest T in which it can be, found by halving.
 */
export function provableBoundMs({ rollouts, engine, backends }: Cluster): number {
  const costs = costsOf(rollouts, engine);
  const fullMs = fullMsOf(rollouts, engine);
  const isEnough = (limitMs: number) => {
    const workMs = workMsOf(costs, engine, (cost) => {
      const { sampledTokens, prefillMs, heldMs, rootMs, toolMs } = cost;
      const spareMs = limitMs - prefillMs - toolMs - sampledTokens * engine.weightsMs;
      return Math.max(heldMs / fullMs, rootMs ** 2 / spareMs);
    });
    return workMs <= backends * limitMs;
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

/** What the engines are busy for, when each rollout pays for so many steps. */
function workMsOf(costs: Cost[], engine: EngineModel, stepsOf: (cost: Cost) => number): number {
  const tokens = sum(costs, ({ sampledTokens }) => sampledTokens);
  const steps = Math.max(sum(costs, stepsOf), tokens / engine.maxBatch);
  return steps * engine.weightsMs + sum(costs, ({ prefillMs, readMs }) => prefillMs + readMs);
}

/** Reading all of the memory, or the one context that is larger. */
function fullMsOf(rollouts: Rollout[], { kvTokens, contextMs }: EngineModel): number {
  return contextMs * Math.max(kvTokens, ...rollouts.map(contextOf));
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
  const siblings = new Map<string, number>();
  for (const { group } of rollouts) siblings.set(group, (siblings.get(group) ?? 0) + 1);
  const groups = new Set<string>();
  return rollouts.map((rollout) => {
    const { group, promptTokens } = rollout;
    const isFirst = !groups.has(group);
    groups.add(group);
    const others = 1 - 1 / (siblings.get(group) ?? 1);
    const costs = { computed: isFirst ? promptTokens : 0, heldByOthers: others * promptTokens };
    return costOf(rollout, costs, engine);
  });
}

type FirstPrompt = { computed: number; heldByOthers: number };

function costOf(
  { turns, promptTokens }: Rollout,
  { computed, heldByOthers }: FirstPrompt,
  { contextMs, prefillTokensPerS }: EngineModel,
): Cost {
  let context = promptTokens;
  let added = computed;
  const cost = { sampledTokens: 0, prefillMs: 0, readMs: 0, heldMs: 0, rootMs: 0, toolMs: 0 };
  for (const [index, { outputTokens, observationTokens, toolMs }] of turns.entries()) {
    if (index > 0) context += added;
    cost.prefillMs += (added / prefillTokensPerS) * 1000;
    cost.sampledTokens += outputTokens;
    const readMs = contextMs * outputTokens * (context + outputTokens / 2);
    cost.readMs += readMs;
    cost.heldMs += readMs - contextMs * outputTokens * heldByOthers;
    const held = context - heldByOthers;
    // A root's curve lies above the line between two of its points.
    const roots = Math.sqrt(held) + Math.sqrt(held + outputTokens);
    cost.rootMs += (outputTokens * Math.sqrt(contextMs) * roots) / 2;
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
