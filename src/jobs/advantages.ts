import { mean } from "./reward-bounds.ts";

export const ADVANTAGES = ["grpo", "rloo", "dapo"] as const;
export type AdvantageKind = (typeof ADVANTAGES)[number];

/** Keeps a group of almost equal rewards from dividing by next to nothing. */
const EPSILON = 1e-6;

/**
 * The advantage of each reward over its group.
 *
 * - `grpo`, `dapo`: (r - mean) / (std + 1e-6), with the sample's standard deviation (n - 1). What DAPO has
 *   besides is in the rewards that go in (its length penalty) and in the weight of a token (`tokenWeight`).
 * - `rloo`: r less the mean of the others.
 *
 * Shapes: as long as `rewards`. One reward alone has nothing to be compared with: 0.
 */
export function advantages(kind: AdvantageKind, rewards: readonly number[]): number[] {
  const n = rewards.length;
  if (n < 2) return rewards.map(() => 0);
  const centre = mean(rewards);
  const distances = rewards.map((reward) => reward - centre);
  if (kind === "rloo") return distances.map((distance) => (distance * n) / (n - 1));
  const squares = distances.reduce((total, distance) => total + distance ** 2, 0);
  const std = Math.sqrt(squares / (n - 1));
  return distances.map((distance) => distance / (std + EPSILON));
}

/**
 * What one token counts in DAPO's loss: every token of the group the same, whichever rollout it is of.
 * Null where an engine did not count them.
 */
export function tokenWeight(tokens: readonly (number | null)[]): number | null {
  let total = 0;
  for (const count of tokens) {
    if (count === null) return null;
    total += count;
  }
  return total === 0 ? null : 1 / total;
}
