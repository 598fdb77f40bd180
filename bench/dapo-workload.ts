import { uniform } from "../src/simulator/random.ts";

/** Rollouts of a group. */
export const SAMPLES = 8;
/** Informative groups of a training step. */
export const GOAL = 32;
/** Steps that are measured, after those in which the pools come to their usual mix of lengths. */
export const STEPS = 6;
export const WARM_UP = 3;

/** Instances that every rollout solves, and that none does; the others are solved now and then. */
const ALL_RIGHT = 0.3;
const ALL_WRONG = 0.3;
export const INFORMATIVE_SHARE = 0.4;

const MEDIAN_TOKENS = 2000;
const SIGMA = 1;
const MAX_TOKENS = 24_000;
const TURN_TOKENS = 400;
const TOOL_S = 1;

/** One rollout as it would go. */
export type Sample = {
  instance: number;
  sample: number;
  tokens: number;
  turnTokens: number;
  /** Time of the tool that follows a turn. */
  toolS: number;
  reward: 0 | 1;
};

/** The same instance gives the same rollouts to every algorithm. Lengths are skewed, as agents' are. */
export function sampleOf(seed: number, instance: number, sample: number): Sample {
  const draw = (what: number) => uniform(seed, instance, sample, what);
  const normal = Math.sqrt(-2 * Math.log(1 - draw(1))) * Math.cos(2 * Math.PI * draw(2));
  const hard = uniform(seed, instance, 77) + 0.5;
  const tokens = Math.min(MAX_TOKENS, Math.round(MEDIAN_TOKENS * hard * Math.exp(SIGMA * normal)));
  const share = uniform(seed, instance, 99);
  const often = 0.15 + 0.7 * uniform(seed, instance, 55);
  let reward: 0 | 1 = draw(3) < often ? 1 : 0;
  if (share < ALL_RIGHT) reward = 1;
  else if (share < ALL_RIGHT + ALL_WRONG) reward = 0;
  const toolS = TOOL_S * (0.5 + draw(4));
  return { instance, sample, tokens: Math.max(20, tokens), turnTokens: TURN_TOKENS, toolS, reward };
}
