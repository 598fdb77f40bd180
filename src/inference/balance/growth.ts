/** Of agents that edit code; what a row's first prompt is, and what tools say for each token that is sampled. */
const FIRST_CONTEXT = 4_000;
const GROWTH_PER_TOKEN = 3;

type Ended = { firstContext: number; contextTokens: number; sampledTokens: number };

/** How long contexts are at first, and by how much they grow for each token that is sampled: what tools say is added. */
export class ContextGrowth {
  #first = FIRST_CONTEXT;
  #sampled = 1;
  #grown = GROWTH_PER_TOKEN;
  #count = 1;

  add({ firstContext, contextTokens, sampledTokens }: Ended): void {
    if (sampledTokens <= 0) return;
    this.#first += firstContext;
    this.#count++;
    this.#grown += Math.max(0, contextTokens - firstContext);
    this.#sampled += sampledTokens;
  }

  get firstContext(): number {
    return this.#first / this.#count;
  }

  get perToken(): number {
    return this.#grown / this.#sampled;
  }
}
