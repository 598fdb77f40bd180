import { Batch } from "./batch.ts";
import { workOf } from "./batch-request.ts";
import type { EngineClock } from "./engine-clock.ts";
import type { EngineModel } from "./engine-model.ts";
import { KvCache, type Lease, type Prefix } from "./kv-cache.ts";
import { uniform } from "./random.ts";

export type Call = {
  promptIds: readonly number[];
  /** What the model will say if nothing ends it sooner; the last id is its end of turn. */
  outputIds: readonly number[];
  /** Why it ends where it is not cut. */
  finish: string;
  maxTokens: number;
  stopTokenIds: readonly number[];
  /** Ids of strings to stop at. */
  stop: readonly (readonly number[])[];
  salt: string;
  signal: AbortSignal;
  /** What the caller named it. */
  id: string;
  /** What is shown of a token's log-probability; by default the model's own. */
  shown?: ((logprob: number) => number) | undefined;
  /** Gets new tokens as they are made, but the last ones. */
  onTokens?: ((ids: number[], logprobs: number[]) => void) | undefined;
};

/** What came of a call. Shapes: `ids` and `logprobs` both have length n. */
export type Sampled = {
  ids: number[];
  logprobs: number[];
  finish: string;
  /** The id that was stopped at on demand; null for the model's own end of turn. */
  matchedId: number | null;
  promptTokens: number;
  cachedTokens: number;
  queueMs: number;
  weightSpans: { version: string; start: number; end: number }[];
};

export type Counters = {
  promptTokens: number;
  cachedTokens: number;
  generatedTokens: number;
};

const LOWEST_LOGPROB = -4;

/** A model with the memory and the speed of a real one, and nothing to say of its own. */
export class SimulatedEngine {
  readonly kv: KvCache;
  readonly batch: Batch<Prefix, Lease>;
  readonly counters: Counters = { promptTokens: 0, cachedTokens: 0, generatedTokens: 0 };
  readonly #seed: number;
  readonly #stops = new Map<AbortController, string>();
  #weightVersion = "0";

  constructor(seed: number, model: EngineModel, clock: EngineClock) {
    this.#seed = seed;
    this.kv = new KvCache(model.kvTokens);
    this.batch = new Batch(model, this.kv, clock);
  }

  get weightVersion(): string {
    return this.#weightVersion;
  }

  /** New weights, under which running requests go on. */
  updateWeights(version: string): void {
    this.batch.mark(this.#weightVersion);
    this.#weightVersion = version;
  }

  /** Ends the calls of these ids: they answer with what they have. */
  stop(isMeant: (id: string) => boolean): void {
    for (const [stop, id] of this.#stops) if (isMeant(id)) stop.abort();
  }

  async generate(call: Call): Promise<Sampled> {
    const { ids, finish, matchedId } = cut(call);
    const { promptIds, salt, onTokens, shown = (own: number) => own } = call;
    const stop = new AbortController();
    const leave = () => stop.abort();
    call.signal.addEventListener("abort", leave, { once: true });
    if (call.signal.aborted) leave();
    this.#stops.set(stop, call.id);
    const { signal } = stop;
    const logprobsOf = (made: number[], from: number) =>
      made.map((id, at) => shown(this.#logprob(promptIds.length + from + at, id)));
    let told = 0;
    const tell = (made: number) => {
      const tokens = ids.slice(told, made);
      if (tokens.length > 0) onTokens?.(tokens, logprobsOf(tokens, told));
      told = made;
    };
    const onProgress = onTokens && tell;
    const work = { ...workOf(promptIds, ids, salt), onProgress };
    const done = await this.batch.run(work, signal);
    call.signal.removeEventListener("abort", leave);
    this.#stops.delete(stop);
    const { cachedTokens, queueMs, generated, marks } = done;
    const whole = generated === ids.length;
    const made = whole ? ids : ids.slice(0, generated);
    this.counters.promptTokens += promptIds.length;
    this.counters.cachedTokens += cachedTokens;
    this.counters.generatedTokens += made.length;
    return {
      ids: made,
      logprobs: logprobsOf(made, 0),
      finish: whole ? finish : "abort",
      matchedId: whole ? matchedId : null,
      promptTokens: promptIds.length,
      cachedTokens,
      queueMs,
      weightSpans: spansOf(marks, this.#weightVersion, made.length),
    };
  }

  /** The same for the same seed, position and id, whatever else happens. */
  #logprob(position: number, id: number): number {
    return LOWEST_LOGPROB * uniform(this.#seed, position, id);
  }
}

function cut({ outputIds, finish, maxTokens, stopTokenIds, stop }: Call) {
  const stopAt = outputIds.findIndex((id) => stopTokenIds.includes(id));
  const ends = stop.map((ids) => endOf(outputIds, ids)).filter((end) => end !== null);
  const stringEnd = Math.min(...ends, Number.POSITIVE_INFINITY);
  const idEnd = stopAt < 0 ? Number.POSITIVE_INFINITY : stopAt + 1;
  const end = Math.min(stringEnd, idEnd);
  if (maxTokens < Math.min(end, outputIds.length)) {
    return { ids: outputIds.slice(0, maxTokens), finish: "length", matchedId: null };
  }
  if (end === Number.POSITIVE_INFINITY) return { ids: [...outputIds], finish, matchedId: null };
  const matchedId = idEnd === end ? (outputIds[stopAt] ?? null) : null;
  // A model that ends its turn where it was told to says why it ended.
  const own = end === outputIds.length;
  return { ids: outputIds.slice(0, end), finish: own ? finish : "stop", matchedId };
}

/** The end of the first occurrence. */
function endOf(ids: readonly number[], wanted: readonly number[]): number | null {
  for (let at = 0; at + wanted.length <= ids.length; at++) {
    if (wanted.every((id, index) => ids[at + index] === id)) return at + wanted.length;
  }
  return null;
}

function spansOf(marks: { version: string; end: number }[], last: string, tokens: number) {
  const spans: Sampled["weightSpans"] = [];
  let start = 0;
  for (const { version, end } of [...marks, { version: last, end: tokens }]) {
    if (end > start) spans.push({ version, start, end });
    start = Math.max(start, end);
  }
  return spans;
}
