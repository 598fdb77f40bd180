import { type EngineModel, msOfSteps, stepsIn } from "../../src/simulator/engine-model.ts";
import type { EventQueue } from "./event-queue.ts";

/** A prompt whose first `sharedTokens` are those of its whole group. */
export type Prompt = { owner: number; group: string; tokens: number; sharedTokens: number };

type Request = Prompt & {
  /** What it has to sample yet. */
  leftTokens: number;
  /** The count of steps at which it began to decode. */
  fromStep: number;
  /** Whether it was thrown out once. */
  again: boolean;
  done(): void;
};

/** So much of the memory is kept free when a request is let in, for those inside to grow (vLLM's watermark). */
const WATERMARK = 0.01;

/**
 * An engine in virtual time that works as vLLM does: requests are let in while their prompts fit, prompts are computed
 * first, and all requests decode together, a token each step. Contexts stay in memory between turns until
 * the room is needed, the longest unused first. Where those that run outgrow it the youngest is thrown out, and
 * computed again when there is room.
 */
export class VirtualEngine {
  readonly #model: EngineModel;
  readonly #queue: EventQueue;
  readonly #waiting: Request[] = [];
  /** The first of them is being computed. */
  readonly #prefills: { request: Request; ms: number }[] = [];
  #prefillEndMs = 0;
  /** In the order in which they came in. */
  readonly #decoding = new Set<Request>();
  #decodingTokens = 0;
  /** Of all that are in: those that decode, and the prompts that are being computed. */
  #runningTokens = 0;
  /** Contexts that nobody uses by owner, the longest unused first. */
  readonly #idle = new Map<number, Pick<Prompt, "group" | "tokens">>();
  #idleTokens = 0;
  #steps = 0;
  #advancedMs = 0;
  #plans = 0;
  promptTokens = 0;
  cachedTokens = 0;
  preemptions = 0;

  constructor(model: EngineModel, queue: EventQueue) {
    this.#model = model;
    this.#queue = queue;
  }

  /** The share of its memory that requests use, as engines report it. */
  get kvUse(): number {
    return this.#runningTokens / this.#model.kvTokens;
  }

  call(prompt: Prompt, outputTokens: number, done: () => void): void {
    this.#advance();
    this.promptTokens += prompt.tokens;
    this.#waiting.push({ ...prompt, leftTokens: outputTokens, fromStep: 0, again: false, done });
    this.#goOn();
  }

  /** The trajectory is over or lives elsewhere. */
  forget(owner: number): void {
    this.#idleTokens -= this.#idle.get(owner)?.tokens ?? 0;
    this.#idle.delete(owner);
  }

  /** Brings what decodes up to now. */
  #advance(): void {
    const nowMs = this.#queue.nowMs();
    const requests = this.#decoding.size;
    if (requests > 0 && this.#prefills.length === 0) {
      const steps = stepsIn(this.#model, this.#decodingNow(), nowMs - this.#advancedMs);
      this.#steps += steps;
      this.#decodingTokens += steps * requests;
      this.#runningTokens += steps * requests;
      this.#evict();
    }
    this.#advancedMs = nowMs;
  }

  #decodingNow() {
    return { requests: this.#decoding.size, contextTokens: this.#decodingTokens };
  }

  #goOn(): void {
    this.#admit();
    const plan = ++this.#plans;
    const wake = (ms: number) => this.#queue.at(ms, () => plan === this.#plans && this.#wake());
    if (this.#prefills.length > 0) wake(this.#prefillEndMs);
    else if (this.#decoding.size > 0) {
      wake(this.#advancedMs + msOfSteps(this.#model, this.#decodingNow(), this.#stepsToNext()));
    }
  }

  /** Until one is done or the memory is full. */
  #stepsToNext(): number {
    let next = (this.#model.kvTokens - this.#runningTokens) / this.#decoding.size;
    if (this.#decoding.size === 1) next = Number.POSITIVE_INFINITY;
    for (const request of this.#decoding) next = Math.min(next, this.#stepsLeft(request));
    return Math.max(0, next);
  }

  #stepsLeft({ fromStep, leftTokens }: Request): number {
    return fromStep + leftTokens - this.#steps;
  }

  #wake(): void {
    this.#advance();
    const [prefill] = this.#prefills;
    if (prefill) this.#decode(prefill.request);
    else this.#finishDue();
    this.#goOn();
  }

  #admit(): void {
    const { maxBatch, kvTokens, prefillTokensPerS } = this.#model;
    for (;;) {
      const [next] = this.#waiting;
      const inside = this.#prefills.length + this.#decoding.size;
      if (!next || inside >= maxBatch) return;
      const used = this.#runningTokens + next.tokens;
      if (inside > 0 && used > (1 - WATERMARK) * kvTokens) return;
      this.#waiting.shift();
      const cached = this.#cachedOf(next);
      // What is computed again is no prompt of anybody's.
      if (!next.again) this.cachedTokens += cached;
      this.forget(next.owner);
      this.#runningTokens += next.tokens;
      this.#evict();
      const ms = ((next.tokens - cached) / prefillTokensPerS) * 1000;
      if (this.#prefills.push({ request: next, ms }) === 1)
        this.#prefillEndMs = this.#queue.nowMs() + ms;
    }
  }

  #decode(request: Request): void {
    this.#prefills.shift();
    const [next] = this.#prefills;
    if (next) this.#prefillEndMs = this.#queue.nowMs() + next.ms;
    request.fromStep = this.#steps;
    this.#decoding.add(request);
    this.#decodingTokens += request.tokens;
  }

  #finishDue(): void {
    const due = [...this.#decoding].filter((request) => this.#stepsLeft(request) < 1e-6);
    for (const request of due) {
      this.#leave(request, request.leftTokens);
      request.done();
    }
    const full = this.#model.kvTokens - this.#runningTokens < 1e-6;
    const youngest = [...this.#decoding].at(-1);
    if (due.length === 0 && full && youngest) this.#preempt(youngest);
  }

  #preempt(request: Request): void {
    const made = this.#steps - request.fromStep;
    this.#leave(request, made);
    this.preemptions++;
    const tokens = request.tokens + made;
    this.#waiting.unshift({
      ...{ ...request, tokens, again: true },
      leftTokens: request.leftTokens - made,
    });
  }

  /** Its context stays, as long as nobody needs the room. */
  #leave(request: Request, made: number): void {
    const { owner, group } = request;
    const tokens = request.tokens + made;
    this.#decoding.delete(request);
    this.#decodingTokens -= tokens;
    this.#runningTokens -= tokens;
    this.#idle.set(owner, { group, tokens });
    this.#idleTokens += tokens;
  }

  #cachedOf({ owner, group, tokens, sharedTokens }: Request): number {
    const own = Math.min(this.#idle.get(owner)?.tokens ?? 0, tokens);
    if (own >= sharedTokens) return own;
    const isSibling = (other: Pick<Prompt, "group" | "tokens">) =>
      other.group === group && other.tokens >= sharedTokens;
    const shared = [...this.#decoding, ...this.#idle.values()].some(isSibling);
    return shared ? Math.min(tokens, sharedTokens) : own;
  }

  #evict(): void {
    let over = this.#runningTokens + this.#idleTokens - this.#model.kvTokens;
    for (const [owner, context] of this.#idle) {
      if (over <= 0) return;
      // The end of a prefix goes first.
      const gone = Math.min(context.tokens, over);
      over -= gone;
      this.#idleTokens -= gone;
      context.tokens -= gone;
      if (context.tokens === 0) this.#idle.delete(owner);
    }
  }
}
