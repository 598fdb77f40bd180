import { Batch } from "../../src/simulator/batch.ts";
import type { EngineModel } from "../../src/simulator/engine-model.ts";
import type { EventQueue } from "./event-queue.ts";
import { type Known, KnownMemory, type Tenancy } from "./known-memory.ts";

/** The engine that `rolloutd simulate` serves, in virtual time, and what it has counted. */
export class VirtualEngine {
  readonly #batch: Batch<Known, Tenancy>;
  readonly #queue: EventQueue;
  promptTokens = 0;
  cachedTokens = 0;

  constructor(model: EngineModel, queue: EventQueue) {
    this.#queue = queue;
    this.#batch = new Batch(model, new KnownMemory(model.kvTokens), queue);
  }

  /** The share of its memory that requests use, as engines report it. */
  get kvUse(): number {
    return this.#batch.kvUse;
  }

  get waiting(): number {
    return this.#batch.waiting;
  }

  get preemptions(): number {
    return this.#batch.preemptions;
  }

  call(prompt: Known, outputTokens: number, done: () => void): void {
    const sequence = (made: number) => ({ ...prompt, tokens: prompt.tokens + made });
    const work = { promptTokens: prompt.tokens, outputTokens, sequence };
    this.#batch.begin(work, ({ cachedTokens }) => {
      this.promptTokens += prompt.tokens;
      this.cachedTokens += cachedTokens;
      // The batch is to be done with it before anybody asks again.
      this.#queue.at(this.#queue.nowMs(), done);
    });
  }
}
