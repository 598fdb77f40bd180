import type { Said } from "./conversation.ts";
import { uniform } from "./random.ts";

/** A lognormal distribution: half of the values are under the median, and sigma 0 is no spread. */
export type Spread = { median: number; sigma: number };

/** Rollouts of random length that call one tool in every turn but the last. */
export type RandomPolicy = {
  kind: "random";
  seed: number;
  turns: Spread;
  /** Units: tokens of the byte tokenizer, without the call. */
  tokens: Spread;
  call: { name: string; arguments: string };
};

const LETTERS = "etaoin shrdlu cmfwyp vbgkjqxz ";

/**
 * What it says next. Everything goes by the seeds and the first user message, so that a rollout is
 * as long, and says the same, whenever it is run.
 */
export function randomTurn(policy: RandomPolicy, asked: string, seed: number, turn: number): Said {
  const parts = [policy.seed, hashText(asked), seed];
  const turns = draw(policy.turns, ...parts, -1);
  const content = randomText(draw(policy.tokens, ...parts, turn), ...parts, turn);
  if (turn >= turns - 1) return { content, toolCalls: [], finishReason: "stop" };
  return { content, toolCalls: [policy.call], finishReason: "tool_calls" };
}

/** A whole number of at least 1. */
export function draw(spread: Spread, ...parts: number[]): number {
  return Math.max(1, Math.round(lognormal(spread, ...parts)));
}

export function lognormal({ median, sigma }: Spread, ...parts: number[]): number {
  const radius = Math.sqrt(-2 * Math.log(1 - uniform(...parts, 1)));
  const normal = radius * Math.cos(2 * Math.PI * uniform(...parts, 2));
  return median * Math.exp(sigma * normal);
}

/** ASCII letters, so that each is one token. */
export function randomText(tokens: number, ...parts: number[]): string {
  let text = "";
  for (let at = 0; at < tokens; at++) {
    text += LETTERS[Math.floor(uniform(...parts, at, 3) * LETTERS.length)];
  }
  return text;
}

export function hashText(text: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < text.length; index++) {
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193);
  }
  return hash;
}
