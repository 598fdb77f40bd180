import type { Done, Request, Work } from "./batch-request.ts";
import type { EngineClock } from "./engine-clock.ts";
import { type EngineModel, msOfSteps, stepsIn } from "./engine-model.ts";
import { BLOCK_TOKENS, type KvMemory, type Room, type Sequence } from "./kv-memory.ts";

const MIN_PROGRESS_MS = 10;
/** So much of the memory is left free when a request is let in, for those inside to grow (vLLM's watermark). */
const WATERMARK = 0.01;
/** Counts of steps are sums of fractions. */
const ROUNDING = 1e-6;

/**
 * Continuous batching, event by event: prompts are computed one after another, and in between all requests that
 * decode advance together, a token a step. So the batch keeps one count of steps, and each request only the count at
 * which it began. Where the contexts outgrow the memory the youngest request is thrown out, and is the next to be let in.
 * `rolloutd simulate` serves it, and the benches play it in virtual time.
 */
export class Batch<S extends Sequence, R extends Room> {
  readonly #model: EngineModel;
  readonly #kv: KvMemory<S, R>;
  readonly #clock: EngineClock;
  readonly #waiting: Request<S, R>[] = [];
  /** The first of them is being computed. */
  readonly #prefilling: Request<S, R>[] = [];
  readonly #decoding = new Set<Request<S, R>>();
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

  constructor(model: EngineModel, kv: KvMemory<S, R>, clock: EngineClock) {
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
  run(work: Work<S>, signal: AbortSignal): Promise<Done> {
    this.#advance();
    if (signal.aborted) {
      return Promise.resolve({ cachedTokens: 0, generated: 0, queueMs: 0, marks: [] });
    }
    return new Promise((resolve) => {
      const onAbort = () => leave();
      signal.addEventListener("abort", onAbort, { once: true });
      const leave = this.begin(work, (done) => {
        signal.removeEventListener("abort", onAbort);
        resolve(done);
      });
    });
  }

  /**
   * @param done is told once, and calls nothing here before it has returned
   * @returns what ends it before its time
   */
  begin(work: Work<S>, done: (done: Done) => void): () => void {
    this.#advance();
    const request: Request<S, R> = {
      ...work,
      ...{ queuedMs: this.#atMs, startedMs: null, room: null, computes: work.sequence(0) },
      ...{ entered: 0, cachedTokens: 0, made: 0, prefillMs: 0, fromStep: 0, marks: [], done },
    };
    this.#waiting.push(request);
    this.#goOn();
    return () => {
      this.#advance();
      // What was done already is on its way to the caller.
      if (!this.#knows(request)) return;
      this.#end(request, this.#progressOf(request));
      this.#goOn();
    };
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
      for (const request of due) this.#end(request, request.outputTokens);
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
    for (const { promptTokens, made, fromStep } of this.#decoding) {
      contextTokens += promptTokens + made + this.#steps - fromStep;
    }
    return { requests: this.#decoding.size, contextTokens };
  }

  #stepsLeft({ fromStep, made, outputTokens }: Request<S, R>): number {
    return fromStep + outputTokens - made - this.#steps;
  }

  /** At least so many steps go by before contexts may have filled the memory. */
  #stepsToFull(): number {
    if (this.#decoding.size === 1) return Number.POSITIVE_INFINITY;
    return 1 + Math.floor(this.#kv.availableBlocks / this.#decoding.size) * BLOCK_TOKENS;
  }

  /**
   * Starts requests in their order while the batch and the memory have room. Prompts are computed in this order too, so that
   * who comes in later finds what those before it have yet to compute (vLLM shares blocks when they are planned).
   */
  #admit(): void {
    for (;;) {
      const [next] = this.#waiting;
      if (!next || this.#paused || this.running >= this.#model.maxBatch) return;
      const watermark = Math.ceil(WATERMARK * this.#kv.capacityBlocks);
      const headroom = this.running === 0 ? 0 : Math.max(this.running + 1, watermark);
      const room = this.#kv.reserve(next.computes, headroom);
      if (!room) return;
      this.#waiting.shift();
      this.#kv.share(room);
      next.room = room;
      next.entered = ++this.#entered;
      if (next.startedMs === null) {
        next.startedMs = this.#atMs;
        next.cachedTokens = room.cachedTokens;
      }
      const tokens = next.computes.tokens - room.cachedTokens;
      next.prefillMs = (tokens / this.#model.prefillTokensPerS) * 1000;
      this.#prefilling.push(next);
    }
  }

  #decode(request: Request<S, R>): void {
    request.fromStep = this.#steps;
    this.#decoding.add(request);
  }

  /** The eldest first; where the memory is full the youngest request is thrown out. */
  #growContexts(): void {
    for (const request of [...this.#decoding]) {
      const { room } = request;
      const tokens = request.promptTokens + this.#progressOf(request);
      while (room && this.#decoding.has(request) && !this.#kv.grow(room, tokens)) {
        const running = [...this.#prefilling, ...this.#decoding];
        if (running.length === 1) break;
        this.#preempt(running.reduce((a, b) => (a.entered > b.entered ? a : b)));
      }
    }
  }

  /** It is the next to be let in, and goes on from what it has made. */
  #preempt(request: Request<S, R>): void {
    const made = this.#progressOf(request);
    this.#leave(request, made);
    request.computes = request.sequence(made);
    request.made = made;
    this.#waiting.unshift(request);
    this.preemptions++;
  }

  /** What it has computed stays in memory as long as nobody needs the room. */
  #leave(request: Request<S, R>, made: number): void {
    const { room, promptTokens } = request;
    const prefilled = this.#decoding.delete(request);
    if (!prefilled) remove(this.#prefilling, request);
    if (!room) return;
    if (prefilled) this.#kv.grow(room, promptTokens + made);
    this.#kv.release(room, prefilled ? request.sequence(made) : null);
    request.room = null;
  }

  /** Tells the streaming requests how far they are, at most a hundred times a second. */
  #watch(): void {
    if (this.#watched || !this.#isStreaming()) return;
    this.#watched = true;
    const stepMs = msOfSteps(this.#model, this.#decodingNow(), 1);
    const everyMs = Math.max(stepMs, MIN_PROGRESS_MS * this.#clock.speed);
    this.#clock.after(everyMs, () => {
      this.#watched = false;
      this.#advance();
      for (const request of this.#streaming()) {
        const made = this.#progressOf(request);
        if (made > 0 && made < request.outputTokens) request.onProgress?.(made);
      }
      this.#goOn();
    });
  }

  #isStreaming(): boolean {
    for (const { onProgress } of this.#decoding) if (onProgress) return true;
    return false;
  }

  #streaming(): Request<S, R>[] {
    return [...this.#decoding].filter(({ onProgress }) => onProgress !== undefined);
  }

  #knows(request: Request<S, R>): boolean {
    const waits = this.#waiting.includes(request) || this.#prefilling.includes(request);
    return waits || this.#decoding.has(request);
  }

  #progressOf(request: Request<S, R>): number {
    if (!this.#decoding.has(request)) return request.made;
    const made = request.made + Math.floor(this.#steps - request.fromStep + ROUNDING);
    return Math.min(request.outputTokens, Math.max(0, made));
  }

  #end(request: Request<S, R>, generated: number): void {
    const { queuedMs, startedMs, marks, cachedTokens } = request;
    remove(this.#waiting, request);
    this.#leave(request, generated);
    const queueMs = ((startedMs ?? this.#atMs) - queuedMs) / this.#clock.speed;
    request.done({ cachedTokens, generated, queueMs, marks });
  }
}

function remove<T>(requests: T[], request: T): void {
  const at = requests.indexOf(request);
  if (at >= 0) requests.splice(at, 1);
}
