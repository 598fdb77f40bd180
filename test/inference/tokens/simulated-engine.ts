import type { TokenModel } from "../../../src/inference/tokens/token-model.ts";

/** A source of numbers in [0, 1) that a seed repeats. */
export function randomOf(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/**
 * What an engine keeps of a conversation: its cache is the ids of the last prompt and completion. It
 * samples text in tokens of its own choice, as a policy does, and not as a tokenizer would.
 */
export class SimulatedEngine {
  cache: number[] = [];
  readonly #model: TokenModel;
  readonly #random: () => number;

  constructor(model: TokenModel, random: () => number) {
    this.#model = model;
    this.#random = random;
  }

  /** How many ids of the prompt it had already; the rest is prefilled. */
  prefill(prompt: Int32Array): number {
    let hit = 0;
    while (hit < prompt.length && hit < this.cache.length && this.cache[hit] === prompt[hit]) hit++;
    this.cache = [...prompt];
    return hit;
  }

  sample(text: string, end: string | null): number[] {
    const ids: number[] = [];
    for (const piece of this.#cut(text)) ids.push(...this.#model.tokenizer.encode(piece));
    if (end !== null) ids.push(...this.#model.tokenizer.encode(end));
    this.cache.push(...ids);
    return ids;
  }

  /** Cut anywhere but inside a character, so that words fall into other tokens than usual. */
  #cut(text: string): string[] {
    const pieces: string[] = [""];
    for (const char of text) {
      if (this.#random() < 0.1) pieces.push("");
      pieces[pieces.length - 1] += char;
    }
    return pieces;
  }
}
