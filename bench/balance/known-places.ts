import type { EngineModel } from "../../src/simulator/engine-model.ts";
import { type Cost, costsOf } from "./bounds.ts";
import type { Rollout } from "./rollouts.ts";

/**
 * Where to put rollouts that all begin at once and stay, when each length is known: by index, the number of a backend.
 * An engine makes as many steps as its longest rollout has tokens, and reads all contexts and prompts besides; the one that
 * takes longest gives something away, until nothing helps.
 *
 * @param toolShare of the time of its tools in which an engine has nothing else to do: 0 to 1
 */
export function knownPlaces(
  rollouts: Rollout[],
  engine: EngineModel,
  backends: number,
  toolShare: number,
): Map<number, number> {
  const costs = costsOf(rollouts, engine);
  const endOf = (those: Set<number>) => {
    let longestMs = 0;
    let sharedMs = 0;
    for (const at of those) {
      const { sampledTokens, toolMs, prefillMs, readMs } = costs[at] as Cost;
      const aloneMs = sampledTokens * engine.weightsMs + toolShare * toolMs;
      longestMs = Math.max(longestMs, aloneMs);
      sharedMs += prefillMs + readMs;
    }
    return longestMs + sharedMs;
  };
  const engines = Array.from({ length: backends }, () => new Set<number>());
  const byLength = costs
    .map(({ sampledTokens }, at) => ({ sampledTokens, at }))
    .sort((a, b) => b.sampledTokens - a.sampledTokens);
  for (const { at } of byLength)
    leastOf(engines, (those) => endOf(new Set([...those, at]))).add(at);
  while (improved(engines, endOf)) {}
  return new Map(engines.flatMap((those, index) => [...those].map((at) => [at, index] as const)));
}

const WORTH_A_CHANGE = 0.002;

/** One rollout of the engine that takes longest goes elsewhere, or changes places with another. */
function improved(engines: Set<number>[], endOf: (those: Set<number>) => number): boolean {
  const worst = leastOf(engines, (those) => -endOf(those));
  const enough = endOf(worst) * (1 - WORTH_A_CHANGE);
  for (const other of engines) {
    if (other === worst) continue;
    for (const given of worst) {
      for (const taken of [null, ...other]) {
        const here = without(worst, given, taken);
        const there = without(other, taken, given);
        if (endOf(here) >= enough || endOf(there) >= enough) continue;
        replace(worst, here);
        replace(other, there);
        return true;
      }
    }
  }
  return false;
}

function without(those: Set<number>, gone: number | null, come: number | null): Set<number> {
  const next = new Set(those);
  if (gone !== null) next.delete(gone);
  if (come !== null) next.add(come);
  return next;
}

function replace(those: Set<number>, by: Set<number>): void {
  those.clear();
  for (const at of by) those.add(at);
}

function leastOf<T>(items: T[], of: (item: T) => number): T {
  return items.reduce((least, item) => (of(item) < of(least) ? item : least));
}
