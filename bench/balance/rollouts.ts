import { uniform } from "../../src/simulator/random.ts";

/** One rollout as it would be played alone. */
export type Rollout = {
  index: number;
  group: string;
  turns: { outputTokens: number; observationTokens: number; toolMs: number }[];
  promptTokens: number;
};

export type Skew = {
  /** Turns of the median rollout, and how instances and rollouts of one instance differ (lognormal). */
  turns: number;
  betweenInstances: number;
  withinInstance: number;
  samples: number;
};

const MAX_TURNS = 50;

/** The same rollouts for the same seed. */
export function rolloutsOf(count: number, skew: Skew, seed: number): Rollout[] {
  return Array.from({ length: count }, (_, index) => {
    const group = Math.floor(index / skew.samples);
    const z =
      skew.betweenInstances * normal(seed, 1, group) + skew.withinInstance * normal(seed, 2, index);
    const length = Math.min(MAX_TURNS, Math.max(1, Math.round(skew.turns * Math.exp(z))));
    const turns = Array.from({ length }, (_turn, turn) => ({
      outputTokens: lognormal(250, 0.6, seed, 3, index, turn),
      observationTokens: lognormal(250, 0.8, seed, 4, index, turn),
      toolMs: lognormal(400, 1, seed, 5, index, turn),
    }));
    return { index, group: `instance ${group}`, turns, promptTokens: 2_000 };
  });
}

export function sampledTokens({ turns }: Rollout): number {
  return turns.reduce((sum, turn) => sum + turn.outputTokens, 0);
}

function lognormal(median: number, sigma: number, ...parts: number[]): number {
  return Math.max(1, Math.round(median * Math.exp(sigma * normal(...parts))));
}

function normal(...parts: number[]): number {
  const radius = Math.sqrt(-2 * Math.log(1 - uniform(...parts, 1)));
  return radius * Math.cos(2 * Math.PI * uniform(...parts, 2));
}
