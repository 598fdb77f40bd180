import { ServiceError } from "../errors.ts";
import type { GenerateReply, GenerateRequest, TokenEngine, WeightSpan } from "./generate.ts";
import { takeTurn } from "./leased-turn.ts";
import type { Lease, Turns } from "./turn-gate.ts";
import { saltOf } from "./weight-salt.ts";

/** So many calls of a turn may bring not one token before it is given up. */
const MAX_EMPTY_CALLS = 5;
/** How long an engine that was asked to end a call has to hand over what it sampled. */
const STOP_GRACE_MS = 2_000;

/**
 * Token in, token out, on whichever backend the desk names. A turn that was broken off is gone on with: the
 * ids so far are the end of the next call's prompt, and its reply has all of them. So is one whose engine
 * failed within a stream.
 */
export function leasedTokens(
  engine: TokenEngine,
  turns: Turns,
  job: { jobId: string; attempt: number },
): TokenEngine {
  return {
    async generate(_backend, request, signal) {
      const sampled = new SampledSoFar(request);
      let backendId = "";
      const turn = await takeTurn<GenerateReply>(
        turns,
        {
          ...job,
          contextTokens: () => sampled.promptIds.length,
          async call(lease, index, callSignal) {
            backendId = lease.backend.id;
            const before = sampled.length;
            const onPartial = (partial: GenerateReply) => sampled.take(partial, lease);
            const asked = { ...sampled.request(lease, index), onPartial };
            const calling = sampled.isFull
              ? Promise.resolve(NOTHING_MORE)
              : stoppable(engine, lease, asked, callSignal);
            const reply = await calling.catch((error) => {
              if (before === 0 || !isOverflow(error)) throw error;
              return NOTHING_MORE;
            });
            const over = sampled.take(reply, lease);
            const contextTokens = sampled.promptIds.length;
            const usage = { contextTokens, sampledTokens: sampled.length - before };
            return { reply, over, usage: { ...usage, load: reply.load } };
          },
        },
        signal,
      ).catch((error) => {
        if (sampled.length > 0) request.onPartial?.({ ...sampled.whole(BROKEN_OFF), backendId });
        throw error;
      });
      return { ...sampled.whole(turn.reply), backendId: turn.backendId, waitedMs: turn.waitedMs };
    },
  };
}

/** A call that the engine itself is asked to end where it is stopped, because only then its ids come. */
async function stoppable(
  engine: TokenEngine,
  { backend, stopped }: Lease,
  request: GenerateRequest,
  signal: AbortSignal,
): Promise<GenerateReply> {
  // A stream has brought its ids already.
  const streams = backend.profile?.streams === true && (request.stallMs ?? 0) > 0;
  if (streams) return await engine.generate(backend, { ...request, stopped }, signal);
  const cut = new AbortController();
  let timer: Timer | undefined;
  const onStop = async () => {
    const asked = (await engine.stop?.(backend, request.requestId)) ?? false;
    timer = setTimeout(() => cut.abort(STOPPED), asked ? STOP_GRACE_MS : 0);
  };
  if (stopped.aborted) onStop();
  stopped.addEventListener("abort", onStop, { once: true });
  try {
    return await engine.generate(backend, request, AbortSignal.any([signal, cut.signal]));
  } finally {
    stopped.removeEventListener("abort", onStop);
    clearTimeout(timer);
  }
}

function isOverflow(error: unknown): boolean {
  return error instanceof ServiceError && error.code === "context_exhausted";
}

/** A turn that was broken off where its context ends has ended by its length. */
const NOTHING_MORE: GenerateReply = {
  tokenIds: [],
  logprobs: [],
  finishReason: "length",
  stopTokenId: null,
  weightSpans: [],
  weightVersion: null,
  cachedTokens: null,
  promptTokens: 0,
  load: null,
  logprobsMode: null,
  times: { totalMs: 0, queueMs: null, firstTokenMs: null },
};

const BROKEN_OFF: GenerateReply = { ...NOTHING_MORE, finishReason: "abort" };

const STOPPED = new ServiceError("engine_aborted", "the call was stopped for new weights");

/** What the calls of one turn have brought, one after the other. */
class SampledSoFar {
  readonly #request: GenerateRequest;
  readonly #ids: number[] = [];
  #logprobs: number[] | null = [];
  #spans: WeightSpan[] | null = [];
  #totalMs = 0;
  #cachedTokens: number | null | undefined;
  #emptyCalls = 0;

  constructor(request: GenerateRequest) {
    this.#request = request;
  }

  get length(): number {
    return this.#ids.length;
  }

  /** As many as were asked for. */
  get isFull(): boolean {
    const { max_tokens = Number.POSITIVE_INFINITY } = this.#request.sampling;
    return this.length >= max_tokens;
  }

  get promptIds(): readonly number[] {
    const { promptIds } = this.#request;
    return this.#ids.length === 0 ? promptIds : [...promptIds, ...this.#ids];
  }

  request({ backend, weightVersion }: Lease, index: number): GenerateRequest {
    const { sampling, requestId } = this.#request;
    const { max_tokens } = sampling;
    const left = max_tokens === undefined ? {} : { max_tokens: max_tokens - this.length };
    return {
      ...this.#request,
      promptIds: this.promptIds,
      sampling: { ...sampling, ...left },
      requestId: index === 0 ? requestId : `${requestId}.c${index}`,
      ...saltOf(backend, weightVersion),
    };
  }

  /** @returns whether the turn is over */
  take(reply: GenerateReply, lease: Lease): boolean {
    const { tokenIds, logprobs } = reply;
    const start = this.length;
    this.#ids.push(...tokenIds);
    if (logprobs === null) this.#logprobs = null;
    else this.#logprobs?.push(...logprobs);
    this.#addSpans(weightSpansOf(reply, lease), start);
    this.#totalMs += reply.times.totalMs;
    this.#cachedTokens ??= reply.cachedTokens;
    this.#emptyCalls = tokenIds.length > 0 ? 0 : this.#emptyCalls + 1;
    if (reply.finishReason !== "abort" || this.#emptyCalls >= MAX_EMPTY_CALLS) return true;
    return this.isFull;
  }

  /** All calls as one. What was broken off when nothing more was to be sampled ended by its length. */
  whole(last: GenerateReply): GenerateReply {
    const isFull = last.finishReason === "abort" && this.isFull;
    return {
      ...last,
      tokenIds: this.#ids,
      logprobs: this.#logprobs,
      finishReason: isFull ? "length" : last.finishReason,
      weightSpans: this.#spans ?? [],
      weightVersion: this.#spans?.at(-1)?.version ?? last.weightVersion,
      cachedTokens: this.#cachedTokens ?? null,
      promptTokens: this.#request.promptIds.length,
      times: { ...last.times, totalMs: this.#totalMs },
    };
  }

  #addSpans(spans: WeightSpan[] | null, offset: number): void {
    if (spans === null || this.#spans === null) {
      this.#spans = null;
      return;
    }
    for (const { version, start, end } of spans) {
      if (end === start) continue;
      const last = this.#spans.at(-1);
      if (last?.version === version) last.end = offset + end;
      else this.#spans.push({ version, start: offset + start, end: offset + end });
    }
  }
}

/**
 * Which weights sampled which token. The engine knows best, where it names versions as they are announced;
 * without its word, what was announced when the call began, unless it changed since: then nobody knows.
 */
export function weightSpansOf(
  reply: Pick<GenerateReply, "weightSpans" | "tokenIds" | "weightVersion">,
  lease: Pick<Lease, "weightVersion" | "reweighed">,
): WeightSpan[] | null {
  const { weightSpans, tokenIds } = reply;
  const { weightVersion: announced } = lease;
  const ofEngine = reply.weightVersion;
  if (tokenIds.length === 0) return [];
  if (weightSpans.length > 0) {
    const known = announced === null || weightSpans.some(({ version }) => version === announced);
    if (known) return weightSpans;
  }
  const version = announced ?? ofEngine;
  if (version === null || lease.reweighed) return null;
  return [{ version, start: 0, end: tokenIds.length }];
}
