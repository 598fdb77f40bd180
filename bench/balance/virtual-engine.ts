/** How fast a virtual engine is, and what it can hold. */
export type EngineModel = {
  /** A step makes one token of each running request. Units: milliseconds. */
  stepMs: number;
  stepMsPerRequest: number;
  prefillTokensPerS: number;
  /** Memory for keys and values. Units: tokens. */
  kvTokens: number;
  maxBatch: number;
};

type Request = {
  owner: number;
  promptTokens: number;
  outputTokens: number;
  untilStep: number;
  readyMs: number;
  done(nowMs: number): void;
};

/**
 * An engine in virtual time: continuous batching, prefill one after the other, and memory in which contexts
 * stay between turns until the room is needed, the longest unused first.
 */
export class VirtualEngine {
  readonly #model: EngineModel;
  readonly #at: (ms: number, what: () => void) => void;
  readonly #now: () => number;
  readonly #waiting: Request[] = [];
  readonly #prefilling = new Set<Request>();
  readonly #decoding = new Set<Request>();
  /** Tokens in memory by owner, the longest unused first. */
  readonly #resident = new Map<number, number>();
  readonly #running = new Map<number, number>();
  #steps = 0;
  #stepsAtMs = 0;
  #prefillFreeMs = 0;
  #planned = 0;
  promptTokens = 0;
  cachedTokens = 0;
  busyMs = 0;

  constructor(model: EngineModel, now: () => number, at: (ms: number, what: () => void) => void) {
    this.#model = model;
    this.#now = now;
    this.#at = at;
  }

  get kvUse(): number {
    return (this.#sum(this.#running) + this.#sum(this.#resident)) / this.#model.kvTokens;
  }

  get load() {
    return { running: this.#running.size, waiting: this.#waiting.length };
  }

  call(owner: number, promptTokens: number, outputTokens: number, done: Request["done"]): void {
    this.#waiting.push({ owner, promptTokens, outputTokens, untilStep: 0, readyMs: 0, done });
    this.#admit();
  }

  /** The trajectory is over or lives elsewhere. */
  forget(owner: number): void {
    this.#resident.delete(owner);
  }

  #admit(): void {
    for (;;) {
      const [next] = this.#waiting;
      if (!next || this.#running.size >= this.#model.maxBatch) return;
      const need = next.promptTokens + next.outputTokens;
      const used = this.#sum(this.#running);
      if (used + need > this.#model.kvTokens && this.#running.size > 0) return;
      this.#waiting.shift();
      const cached = Math.min(this.#resident.get(next.owner) ?? 0, next.promptTokens);
      this.#resident.delete(next.owner);
      this.#running.set(next.owner, need);
      this.#evict();
      this.promptTokens += next.promptTokens;
      this.cachedTokens += cached;
      this.#prefill(next, next.promptTokens - cached);
    }
  }

  #prefill(request: Request, tokens: number): void {
    this.#prefilling.add(request);
    const durationMs = (tokens / this.#model.prefillTokensPerS) * 1000;
    this.#prefillFreeMs = Math.max(this.#now(), this.#prefillFreeMs) + durationMs;
    this.#at(this.#prefillFreeMs, () => {
      this.#advance();
      this.#prefilling.delete(request);
      this.#decoding.add(request);
      request.untilStep = this.#steps + request.outputTokens;
      this.#plan();
    });
  }

  #evict(): void {
    let over = this.#sum(this.#running) + this.#sum(this.#resident) - this.#model.kvTokens;
    for (const [owner, tokens] of this.#resident) {
      if (over <= 0) return;
      // The end of a prefix goes first.
      const kept = Math.max(0, tokens - over);
      over -= tokens - kept;
      if (kept === 0) this.#resident.delete(owner);
      else this.#resident.set(owner, kept);
    }
  }

  get #stepNowMs(): number {
    const { stepMs, stepMsPerRequest } = this.#model;
    return stepMs + stepMsPerRequest * Math.max(0, this.#decoding.size - 1);
  }

  #advance(): void {
    const nowMs = this.#now();
    if (this.#decoding.size > 0) {
      this.#steps += (nowMs - this.#stepsAtMs) / this.#stepNowMs;
      this.busyMs += nowMs - this.#stepsAtMs;
    }
    this.#stepsAtMs = nowMs;
  }

  #plan(): void {
    const plan = ++this.#planned;
    if (this.#decoding.size === 0) return;
    let next = Number.POSITIVE_INFINITY;
    for (const { untilStep } of this.#decoding) next = Math.min(next, untilStep);
    this.#at(this.#now() + Math.max(0, next - this.#steps) * this.#stepNowMs, () => {
      if (plan === this.#planned) this.#finishDue();
    });
  }

  #finishDue(): void {
    this.#advance();
    const due = [...this.#decoding].filter(({ untilStep }) => untilStep <= this.#steps + 1e-6);
    for (const request of due) {
      this.#decoding.delete(request);
      this.#running.delete(request.owner);
      this.#resident.set(request.owner, request.promptTokens + request.outputTokens);
    }
    this.#evict();
    for (const request of due) request.done(this.#now());
    this.#admit();
    this.#plan();
  }

  #sum(tokens: ReadonlyMap<number, number>): number {
    let sum = 0;
    for (const value of tokens.values()) sum += value;
    return sum;
  }
}
