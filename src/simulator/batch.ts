import { BLOCK_TOKENS, type KvCache, type Lease } from "./kv-cache.ts";

/** How fast the engine is. Zero times and an infinite speed make an answer immediate. */
export type Performance = {
  /** Units: prompt tokens that are not cached, of all requests together. */
  prefillTokensPerS: number;
  /** A step makes one token of each request in the batch; it takes longer the more they are. */
  msPerToken: number;
  msPerTokenPerRequest: number;
  maxBatch: number;
};

export type Work = {
  promptIds: readonly number[];
  outputIds: readonly number[];
  salt: string;
  signal: AbortSignal;
  /** Told now and then how many tokens are made, while they are fewer than all. */
  onProgress?: ((made: number) => void) | undefined;
};

export type Done = {
  cachedTokens: number;
  /** Fewer than were to be made where the engine gave up. */
  generated: number;
  queueMs: number;
  /** Where in the output the engine's weights changed, oldest first. */
  marks: { version: string; end: number }[];
};

const MIN_PROGRESS_MS = 10;
/** So much of the memory is left free when a request is let in, for those inside to grow (vLLM's watermark). */
const WATERMARK = 0.01;

type Request = Work & {
  queuedMs: number;
  startedMs: number;
  lease: Lease | null;
  /** In which order it was let in. */
  entered: number;
  /** What of its prompt it found in memory when it was let in first. */
  cachedTokens: number;
  /** Tokens that it had made when it was last thrown out. */
  made: number;
  timer: Timer | undefined;
  /** The batch's step in which it began to decode, and in which it will be done. */
  fromStep: number;
  untilStep: number;
  marks: Done["marks"];
  resolve(done: Done): void;
};

/**
 * Continuous batching. All requests that decode advance together, a token a step, so the batch keeps
 * one count of steps whose speed changes with the number of requests, and each request only the
 * count at which it is done.
 */
export class Batch {
  readonly #performance: Performance;
  readonly #kv: KvCache;
  readonly #waiting: Request[] = [];
  readonly #prefilling = new Set<Request>();
  readonly #decoding = new Set<Request>();
  #entered = 0;
  #steps = 0;
  #stepsAtMs = 0;
  #prefillFreeMs = 0;
  #timer: Timer | undefined;
  #progressTimer: Timer | undefined;
  #paused = false;
  #frozen = false;
  /** Requests that were thrown out of memory, to be computed again. */
  preemptions = 0;

  constructor(performance: Performance, kv: KvCache) {
    this.#performance = performance;
    this.#kv = kv;
  }

  /** No further requests begin until `resume`; with `freeze` those that run stand still as well. */
  pause(freeze: boolean): void {
    this.#advance();
    this.#paused = true;
    this.#frozen = freeze;
    this.#schedule();
  }

  resume(): void {
    this.#advance();
    this.#paused = false;
    this.#frozen = false;
    if (this.#stepMs === 0) {
      for (const request of this.#decoding) this.#end(request, request.outputIds.length);
    }
    this.#admit();
    this.#schedule();
  }

  get paused(): boolean {
    return this.#paused;
  }

  get running(): number {
    return this.#prefilling.size + this.#decoding.size;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Resolves when the last token is made, or at once with what there is when the caller leaves. */
  run(work: Work): Promise<Done> {
    return new Promise((resolve) => {
      const onAbort = () => this.#end(request, this.#progressOf(request));
      const request: Request = {
        ...work,
        queuedMs: performance.now(),
        startedMs: Number.NaN,
        lease: null,
        ...{ entered: 0, cachedTokens: 0, made: 0 },
        timer: undefined,
        fromStep: 0,
        untilStep: 0,
        marks: [],
        resolve: (done) => {
          work.signal.removeEventListener("abort", onAbort);
          resolve(done);
        },
      };
      work.signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(request);
      this.#admit();
    });
  }

  /** Everything that is generated from now on is by other weights than `version`. */
  mark(version: string): void {
    this.#advance();
    for (const request of [...this.#prefilling, ...this.#decoding]) {
      request.marks.push({ version, end: this.#progressOf(request) });
    }
  }

  /** Starts requests in their order while the batch and the memory have room. */
  #admit(): void {
    for (;;) {
      const [next] = this.#waiting;
      if (!next || this.#paused || this.running >= this.#performance.maxBatch) return;
      const watermark = Math.ceil(WATERMARK * this.#kv.capacityBlocks);
      const headroom = this.running === 0 ? 0 : Math.max(this.running + 1, watermark);
      const ids = computedBy(next, next.made);
      next.lease = this.#kv.reserve(ids, next.salt, ids.length, headroom);
      if (!next.lease) return;
      this.#waiting.shift();
      next.entered = ++this.#entered;
      if (Number.isNaN(next.startedMs)) next.cachedTokens = next.lease.cachedTokens;
      this.#prefill(next, next.lease);
    }
  }

  #prefill(request: Request, lease: Lease): void {
    const nowMs = performance.now();
    if (Number.isNaN(request.startedMs)) request.startedMs = nowMs;
    this.#prefilling.add(request);
    const tokens = request.promptIds.length + request.made - lease.cachedTokens;
    const durationMs = (tokens / this.#performance.prefillTokensPerS) * 1000;
    this.#prefillFreeMs = Math.max(nowMs, this.#prefillFreeMs) + durationMs;
    if (this.#prefillFreeMs <= nowMs) this.#decode(request, lease);
    else {
      const waitMs = this.#prefillFreeMs - nowMs;
      request.timer = setTimeout(() => this.#decode(request, lease), waitMs);
    }
  }

  #decode(request: Request, lease: Lease): void {
    this.#kv.share(lease);
    this.#advance();
    this.#prefilling.delete(request);
    this.#decoding.add(request);
    request.fromStep = this.#steps;
    request.untilStep = this.#steps + request.outputIds.length - request.made;
    if (this.#stepMs === 0 && !this.#frozen) this.#end(request, request.outputIds.length);
    else {
      if (request.onProgress) this.#watch();
      this.#schedule();
    }
  }

  /** Tells the streaming requests how far they are, at most a hundred times a second. */
  #watch(): void {
    this.#progressTimer ??= setInterval(
      () => {
        this.#advance();
        let streaming = false;
        for (const request of this.#decoding) {
          if (!request.onProgress) continue;
          streaming = true;
          const made = this.#progressOf(request);
          if (made > 0 && made < request.outputIds.length) request.onProgress(made);
        }
        if (streaming) return;
        clearInterval(this.#progressTimer);
        this.#progressTimer = undefined;
      },
      Math.max(this.#stepMs, MIN_PROGRESS_MS),
    );
  }

  get #stepMs(): number {
    const { msPerToken, msPerTokenPerRequest } = this.#performance;
    return msPerToken + msPerTokenPerRequest * Math.max(0, this.#decoding.size - 1);
  }

  /** Brings the count of steps up to now. */
  #advance(): void {
    const nowMs = performance.now();
    const stepMs = this.#stepMs;
    const decodes = !this.#frozen && this.#decoding.size > 0;
    const steps = stepMs > 0 && decodes ? (nowMs - this.#stepsAtMs) / stepMs : 0;
    this.#steps += steps;
    this.#stepsAtMs = nowMs;
    if (steps > 0) this.#growContexts();
  }

  /** The eldest first; where the memory is full the youngest request is thrown out. */
  #growContexts(): void {
    for (const request of [...this.#decoding]) {
      const { lease } = request;
      const tokens = request.promptIds.length + this.#progressOf(request);
      while (lease && this.#decoding.has(request) && !this.#kv.grow(lease, tokens)) {
        const running = [...this.#prefilling, ...this.#decoding];
        if (running.length === 1) break;
        this.#preempt(running.reduce((a, b) => (a.entered > b.entered ? a : b)));
      }
    }
  }

  /** It is the next to be let in, and goes on from what it has made. */
  #preempt(request: Request): void {
    const made = this.#progressOf(request);
    this.#leave(request, made);
    request.made = made;
    this.#waiting.unshift(request);
    this.preemptions++;
  }

  /** What it has computed stays in memory as long as nobody needs the room. */
  #leave(request: Request, made: number): void {
    const { lease, promptIds, salt } = request;
    const prefilled = this.#decoding.delete(request);
    clearTimeout(request.timer);
    this.#prefilling.delete(request);
    if (!lease) return;
    if (prefilled) this.#kv.grow(lease, promptIds.length + made);
    this.#kv.release(lease, prefilled ? computedBy(request, made) : null, salt);
    request.lease = null;
  }

  #schedule(): void {
    clearTimeout(this.#timer);
    if (this.#decoding.size === 0 || this.#frozen) return;
    let next = Number.POSITIVE_INFINITY;
    for (const { untilStep } of this.#decoding) next = Math.min(next, untilStep);
    next = Math.min(next, this.#steps + this.#stepsToFull());
    const waitMs = (next - this.#steps) * this.#stepMs;
    this.#timer = setTimeout(() => this.#finishDue(), Math.max(0, waitMs));
  }

  /** At least so many steps go by before contexts may have filled the memory. */
  #stepsToFull(): number {
    const blocksEach = Math.floor(this.#kv.availableBlocks / this.#decoding.size);
    return this.#decoding.size === 1 ? Number.POSITIVE_INFINITY : 1 + blocksEach * BLOCK_TOKENS;
  }

  #finishDue(): void {
    this.#advance();
    const due = [...this.#decoding].filter(({ untilStep }) => untilStep <= this.#steps + 1e-6);
    for (const request of due) this.#end(request, request.outputIds.length);
    this.#admit();
    this.#schedule();
  }

  #progressOf(request: Request): number {
    if (!this.#decoding.has(request)) return request.made;
    const made = request.made + Math.floor(this.#steps - request.fromStep);
    return Math.min(request.outputIds.length, Math.max(0, made));
  }

  #end(request: Request, generated: number): void {
    this.#advance();
    const { queuedMs, startedMs, marks, cachedTokens } = request;
    const waited = this.#waiting.indexOf(request);
    if (waited >= 0) this.#waiting.splice(waited, 1);
    this.#leave(request, generated);
    const queueMs = (Number.isNaN(startedMs) ? performance.now() : startedMs) - queuedMs;
    request.resolve({ cachedTokens, generated, queueMs, marks });
    this.#admit();
    this.#schedule();
  }
}

function computedBy({ promptIds, outputIds }: Work, made: number): readonly number[] {
  return made === 0 ? promptIds : [...promptIds, ...outputIds.slice(0, made)];
}
