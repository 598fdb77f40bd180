import { uniform } from "../../src/simulator/random.ts";

/** One rollout as it would be played alone. */
export type Rollout = {
  index: number;
  group: string;
  turns: { outputTokens: number; observationTokens: number; toolMs: number }[];
  promptTokens: number;
};

export type Skew = {
  /** Turns: the fewest, what a fifth have at most, two fifths and so on, and the most. */
  fifths: readonly number[];
  /** Where trainers cut. */
  maxTurns: number;
  /** How much of the spread lies between instances: 0 is none, 1 makes all of a group equally long. */
  instanceShare: number;
  samples: number;
};

/**
 * OpenHands with GPT-4o on SWE-Gym, all 5,826 runs, also those that failed: the environment and the agent that ProRL's
 * recipe uses, cut at the 50 turns of its trainers. Siblings are alike in length (Seer,
 * arXiv:2511.14617) but far from equal (DARTS, arXiv:2605.30859); neither gives a figure, so half is assumed.
 *
 * Source: the fifths by ai-waste-index, from the public trajectories.
 */
export const OPENHANDS: Skew = {
  ...{ fifths: [3, 4, 10, 19, 31, 99], maxTurns: 50 },
  ...{ instanceShare: 0.5, samples: 8 },
};

/** SWE-agent with a Llama 70B, 18,582 runs, of which 28 % use up their context. Source: as above. */
export const SWE_AGENT: Skew = { ...OPENHANDS, fifths: [1, 10, 14, 21, 37, 398] };

/** Qwen3-14B's own context. A rollout that fills it is over. */
const MAX_CONTEXT = 40_960;
/**
 * With what an agent is told at first, most runs on SWE-Gym have about 20,000 tokens in the end (Scale-SWE's figure
 * of it). They are turns of a few hundred, and what tools answer is longer and more uneven.
 */
const TOKENS = { prompt: 4_000, output: 250, observation: 430 };
/** Most commands are quick, a test run is not. */
const TOOL_MS = 400;

/** The same rollouts for the same seed. */
export function rolloutsOf(count: number, skew: Skew, seed: number): Rollout[] {
  return Array.from({ length: count }, (_, index) => {
    const group = Math.floor(index / skew.samples);
    const z =
      Math.sqrt(skew.instanceShare) * normal(seed, 1, group) +
      Math.sqrt(1 - skew.instanceShare) * normal(seed, 2, index);
    const wanted = Math.round(quantile(skew.fifths, below(z)));
    const length = Math.min(skew.maxTurns, wanted);
    const turns: Rollout["turns"] = [];
    let context = TOKENS.prompt;
    while (turns.length < length) {
      const outputTokens = lognormal(TOKENS.output, 0.6, seed, 3, index, turns.length);
      const observationTokens = lognormal(TOKENS.observation, 0.8, seed, 4, index, turns.length);
      const toolMs = lognormal(TOOL_MS, 1, seed, 5, index, turns.length);
      if (context + outputTokens > MAX_CONTEXT) break;
      context += outputTokens + observationTokens;
      turns.push({ outputTokens, observationTokens, toolMs });
    }
    return { index, group: `instance ${group}`, turns, promptTokens: TOKENS.prompt };
  });
}

export function sampledTokens({ turns }: Rollout): number {
  return turns.reduce((sum, turn) => sum + turn.outputTokens, 0);
}

/** Between two known ones a length is as likely as another of the same logarithm's distance. */
function quantile(fifths: readonly number[], share: number): number {
  const at = Math.min(fifths.length - 2, Math.floor(share * (fifths.length - 1)));
  const [low, high] = [fifths[at] as number, fifths[at + 1] as number];
  return low * (high / low) ** (share * (fifths.length - 1) - at);
}

/** The share of a normal distribution below `z`, to four digits (Abramowitz and Stegun 7.1.25). */
function below(z: number): number {
  const t = 1 / (1 + (0.47047 * Math.abs(z)) / Math.SQRT2);
  const tail = (t * (0.3480242 + t * (-0.0958798 + t * 0.7478556)) * Math.exp((-z * z) / 2)) / 2;
  return z > 0 ? 1 - tail : tail;
}

function lognormal(median: number, sigma: number, ...parts: number[]): number {
  return Math.max(1, Math.round(median * Math.exp(sigma * normal(...parts))));
}

function normal(...parts: number[]): number {
  const radius = Math.sqrt(-2 * Math.log(1 - uniform(...parts, 1)));
  return radius * Math.cos(2 * Math.PI * uniform(...parts, 2));
}
