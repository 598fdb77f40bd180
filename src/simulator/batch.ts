import { computedBy, type Done, type Request, type Work } from "./batch-request.ts";
import type { EngineClock } from "./engine-clock.ts";
import { type EngineModel, msOfSteps, stepsIn } from "./engine-model.ts";
import { BLOCK_TOKENS, type KvCache } from "./kv-cache.ts";

const MIN_PROGRESS_MS = 10;
/** So much of the memory is left free when a request is let in, for those inside to grow (vLLM's watermark). */
const WATERMARK = 0.01;
/** Counts of steps are sums of fractions. */
const ROUNDING = 1e-6;

/**
 * Continuous batching, event by event: prompts are computed one after another, and in between all requests that
 * decode advance together, a token a step. So the batch keeps one count of steps, and each request only the count at
 * which it began. Where the contexts outgrow the memory the youngest request is thrown out, and is the next to be let in.
 */
export class Batch {
  readonly #model: EngineModel;
  readonly #kv: KvCache;
  readonly #clock: EngineClock;
  readonly #waiting: Request[] = [];
  /** The first of them is being computed. */
  readonly #prefilling: Request[] = [];
  readonly #decoding = new Set<Request>();
  #entered = 0;
  #steps = 0;
  /** Up to when everything here has happened. */
  #atMs = 0;
  #cancelTimer = () => {};
  #watched = false;
  #paused = false;
  #frozen = false;
  /** Requests that were thrown out of memory, to be computed again. */
  preemptions = 0;

  constructor(model: EngineModel, kv: KvCache, clock: EngineClock) {
    this.#model = model;
    this.#kv = kv;
    this.#clock = clock;
    this.#atMs = clock.nowMs();
  }

  /** No further requests begin until `resume`; with `freeze` those that run stand still as well. */
  pause(freeze: boolean): void {
    this.#advance();
    this.#paused = true;
    this.#frozen = freeze;
    this.#goOn();
  }

  resume(): void {
    this.#advance();
    this.#paused = false;
    this.#frozen = false;
    this.#goOn();
  }

  get paused(): boolean {
    return this.#paused;
  }

  get running(): number {
    return this.#prefilling.length + this.#decoding.size;
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** The share of the memory that requests use now. */
  get kvUse(): number {
    this.#advance();
    return this.#kv.usage;
  }

  /** Resolves when the last token is made, or at once with what there is when the caller leaves. */
  run(work: Work): Promise<Done> {
    this.#advance();
    if (work.signal.aborted) {
      return Promise.resolve({ cachedTokens: 0, generated: 0, queueMs: 0, marks: [] });
    }
    return new Promise((resolve) => {
      const onAbort = () => {
        this.#advance();
        // What was done already is on its way to the caller.
        if (!this.#knows(request)) return;
        this.#end(request, this.#progressOf(request));
        this.#goOn();
      };
      const request: Request = {
        ...work,
        ...{ queuedMs: this.#atMs, startedMs: null, lease: null },
        prefix: computedBy(work, 0),
        ...{ entered: 0, cachedTokens: 0, made: 0, prefillMs: 0, fromStep: 0, marks: [] },
        resolve: (done) => {
          work.signal.removeEventListener("abort", onAbort);
          resolve(done);
        },
      };
      work.signal.addEventListener("abort", onAbort, { once: true });
      this.#waiting.push(request);
      this.#goOn();
    });
  }

  /** Everything that is generated from now on is by other weights than `version`. */
  mark(version: string): void {
    this.#advance();
    for (const request of [...this.#prefilling, ...this.#decoding]) {
      request.marks.push({ version, end: this.#progressOf(request) });
    }
  }

  /** Lets everything happen that is due, at its own time: a timer that fires late delays no step. */
  #advance(): void {
    const nowMs = this.#clock.nowMs();
    if (!this.#frozen) {
      for (;;) {
        this.#admit();
        const next = this.#next();
        if (!next || this.#atMs + next.ms > nowMs) break;
        this.#atMs += next.ms;
        this.#happen(next.steps);
      }
      this.#work(nowMs - this.#atMs);
    }
    this.#atMs = nowMs;
  }

  #goOn(): void {
    this.#advance();
    this.#cancelTimer();
    const next = this.#frozen ? null : this.#next();
    if (next) this.#cancelTimer = this.#clock.after(next.ms, () => this.#goOn());
    this.#watch();
  }

  /** What happens next, unless somebody comes or leaves before. Units: milliseconds from `#atMs`. */
  #next(): { ms: number; steps: number } | null {
    const [computed] = this.#prefilling;
    if (computed) return { ms: computed.prefillMs, steps: 0 };
    if (this.#decoding.size === 0) return null;
    let steps = this.#stepsToFull();
    for (const request of this.#decoding) steps = Math.min(steps, this.#stepsLeft(request));
    steps = Math.max(0, steps);
    return { ms: msOfSteps(this.#model, this.#decodingNow(), steps), steps };
  }

  #happen(steps: number): void {
    const computed = this.#prefilling.shift();
    if (computed) this.#decode(computed);
    else {
      this.#steps += steps;
      const due = [...this.#decoding].filter((request) => this.#stepsLeft(request) <= ROUNDING);
      for (const request of due) this.#end(request, request.outputIds.length);
      this.#growContexts();
    }
  }

  /** A part of what happens next. */
  #work(ms: number): void {
    if (ms <= 0) return;
    const [computed] = this.#prefilling;
    if (computed) computed.prefillMs -= ms;
    else if (this.#decoding.size > 0) {
      this.#steps += stepsIn(this.#model, this.#decodingNow(), ms);
      this.#growContexts();
    }
  }

  #decodingNow() {
    let contextTokens = 0;
    for (const { promptIds, made, fromStep } of this.#decoding) {
      contextTokens += promptIds.length + made + this.#steps - fromStep;
    }
    return { requests: this.#decoding.size, contextTokens };
  }

  #stepsLeft({ fromStep, made, outputIds }: Request): number {
    return fromStep + outputIds.length - made - this.#steps;
  }

  /** At least so many steps go by before contexts may have filled the memory. */
  #stepsToFull(): number {
    if (this.#decoding.size === 1) return Number.POSITIVE_INFINITY;
    return 1 + Math.floor(this.#kv.availableBlocks / this.#decoding.size) * BLOCK_TOKENS;
  }

  /** Starts requests in their order while the batch and the memory have room. */
  #admit(): void {
    for (;;) {
      const [next] = this.#waiting;
      if (!next || this.#paused || this.running >= this.#model.maxBatch) return;
      const watermark = Math.ceil(WATERMARK * this.#kv.capacityBlocks);
      const headroom = this.running === 0 ? 0 : Math.max(this.running + 1, watermark);
      const lease = this.#kv.reserve(next.prefix, next.prefix.tokens, headroom);
      if (!lease) return;
      this.#waiting.shift();
      next.lease = lease;
      next.entered = ++this.#entered;
      if (next.startedMs === null) {
        next.startedMs = this.#atMs;
        next.cachedTokens = lease.cachedTokens;
      }
      const tokens = next.prefix.tokens - lease.cachedTokens;
      next.prefillMs = (tokens / this.#model.prefillTokensPerS) * 1000;
      this.#prefilling.push(next);
    }
  }

  #decode(request: Request): void {
    if (request.lease) this.#kv.share(request.lease);
    request.fromStep = this.#steps;
    this.#decoding.add(request);
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
    request.prefix = computedBy(request, made);
    request.made = made;
    this.#waiting.unshift(request);
    this.preemptions++;
  }

  /** What it has computed stays in memory as long as nobody needs the room. */
  #leave(request: Request, made: number): void {
    const { lease, promptIds } = request;
    const prefilled = this.#decoding.delete(request);
    if (!prefilled) remove(this.#prefilling, request);
    if (!lease) return;
    if (prefilled) this.#kv.grow(lease, promptIds.length + made);
    this.#kv.release(lease, prefilled ? computedBy(request, made) : null);
    request.lease = null;
  }

  /** Tells the streaming requests how far they are, at most a hundred times a second. */
  #watch(): void {
    if (this.#watched || this.#streaming().length === 0) return;
    this.#watched = true;
    const stepMs = msOfSteps(this.#model, this.#decodingNow(), 1);
    const everyMs = Math.max(stepMs, MIN_PROGRESS_MS * this.#clock.speed);
    this.#clock.after(everyMs, () => {
      this.#watched = false;
      this.#advance();
      for (const request of this.#streaming()) {
        const made = this.#progressOf(request);
        if (made > 0 && made < request.outputIds.length) request.onProgress?.(made);
      }
      this.#goOn();
    });
  }

  #streaming(): Request[] {
    return [...this.#decoding].filter(({ onProgress }) => onProgress !== undefined);
  }

  #knows(request: Request): boolean {
    const waits = this.#waiting.includes(request) || this.#prefilling.includes(request);
    return waits || this.#decoding.has(request);
  }

  #progressOf(request: Request): number {
    if (!this.#decoding.has(request)) return request.made;
    const made = request.made + Math.floor(this.#steps - request.fromStep + ROUNDING);
    return Math.min(request.outputIds.length, Math.max(0, made));
  }

  #end(request: Request, generated: number): void {
    const { queuedMs, startedMs, marks, cachedTokens } = request;
    remove(this.#waiting, request);
    this.#leave(request, generated);
    const queueMs = ((startedMs ?? this.#atMs) - queuedMs) / this.#clock.speed;
    request.resolve({ cachedTokens, generated, queueMs, marks });
  }
}

function remove(requests: Request[], request: Request): void {
  const at = requests.indexOf(request);
  if (at >= 0) requests.splice(at, 1);
}
