import { ServiceError } from "../errors.ts";
import { checkTokens } from "./check-tokens.ts";
import { type Endpoint, endpointOf } from "./endpoint.ts";
import type { Backend } from "./engine.ts";
import { callEngine, RETRY_LIMITS, type RetryLimits } from "./engine-call.ts";
import type { TokenRung } from "./engine-profile.ts";
import { stopInEngine } from "./engine-stop.ts";
import { Connections } from "./exchange.ts";
import type { GenerateReply, GenerateRequest, TokenEngine } from "./generate.ts";
import type { LogprobsMode } from "./logprobs-mode.ts";
import { callStreamed } from "./streamed-call.ts";
import { prorlGenerate } from "./wires/prorl.ts";
import { sglangGenerate } from "./wires/sglang.ts";
import { vllmCompletions, vllmCompletionsTextIds } from "./wires/vllm-completions.ts";
import { vllmGenerate } from "./wires/vllm-generate.ts";
import { NOTHING_SAID, type RawTokens, type Wire } from "./wires/wire.ts";

const WIRES: Record<TokenRung, Wire> = {
  inference_generate: vllmGenerate,
  completions: vllmCompletions,
  completions_text_ids: vllmCompletionsTextIds,
  sglang_generate: sglangGenerate,
  prorl_generate: prorlGenerate,
};

/** How a backend is asked for tokens. */
export type TokenRoute = {
  rung: TokenRung;
  maxModelLen: number | null;
  /** Whether log-probabilities are known to come, so that a reply without them is wrong. */
  logprobs: boolean;
  logprobsMode: LogprobsMode | null;
  /** Whether replies can come token by token. */
  streams: boolean;
};

/**
 * The client of every engine that takes token ids: the probe's rung says how. Its connections are
 * kept between calls, so a thread has one for all its rollouts.
 */
export function tokenEngine(limits: RetryLimits = RETRY_LIMITS): TokenEngine & Disposable {
  const connections = new Connections();
  return {
    async generate(backend, request, signal) {
      return generateWith(connections, limits, backend, routeFrom(backend), request, signal);
    },
    stop: (backend, requestId) => stopInEngine(connections, backend, requestId),
    [Symbol.dispose]: () => connections[Symbol.dispose](),
  };
}

/** @throws ServiceError as `TokenEngine.generate` */
export async function generateWith(
  connections: Connections,
  limits: RetryLimits,
  backend: Backend,
  route: TokenRoute,
  request: GenerateRequest,
  signal: AbortSignal,
): Promise<GenerateReply> {
  const startMs = performance.now();
  const endpoint = endpointOf(backend);
  const { sessionId, requestId, timeoutMs, maxReplyBytes } = request;
  const maxTokens = tokensToAskFor(endpoint, request, route.maxModelLen);
  const asked = { ...request, model: backend.model, maxTokens };
  const wire = WIRES[route.rung];
  const call = {
    endpoint,
    method: "POST" as const,
    root: wire.root,
    path: wire.path,
    headers: { "X-Session-ID": sessionId, "X-SMG-Routing-Key": sessionId },
    body: (id: string) => wire.body(asked, id),
    requestId,
    timeoutMs,
    maxReplyBytes,
  };
  const expected = { ...request, maxTokens, logprobs: route.logprobs };
  const reply = (raw: RawTokens, firstTokenMs: number | null): GenerateReply => ({
    ...checkTokens(endpoint.shown, raw, expected),
    promptTokens: request.promptIds.length,
    load: raw.load,
    logprobsMode: raw.logprobs === null ? null : route.logprobsMode,
    times: { totalMs: performance.now() - startMs, queueMs: raw.queueMs, firstTokenMs },
  });
  const { stallMs = 0, stopped, onPartial } = request;
  const { streamed } = wire;
  if (!streamed || !route.streams || stallMs === 0) {
    const value = await callEngine(connections, call, limits, signal);
    return reply(wire.read(endpoint.shown, value, asked), null);
  }
  const body = (id: string) => ({ ...call.body(id), ...streamed.ask });
  const options = { streamed, stallMs, stopped };
  const told = await callStreamed(connections, { ...call, body }, limits, options, signal);
  const { value, firstTokenMs, broken } = told;
  if (!broken) {
    const raw = wire.read(endpoint.shown, value, asked);
    // vLLM leaves out the last piece of a stream that was aborted between two tokens.
    return reply({ ...raw, finish: raw.finish ?? "abort" }, firstTokenMs);
  }
  const partial = (): GenerateReply => {
    const raw = value === null ? NO_TOKENS : wire.read(endpoint.shown, value, asked);
    return reply({ ...raw, finish: "abort" }, firstTokenMs);
  };
  if (broken.stopped) return partial();
  if (firstTokenMs !== null && onPartial && !isWrong(broken.reason)) {
    // What is wrong with the part is not why the call ended.
    const kept = attempt(partial);
    if (kept) onPartial(kept);
  }
  throw broken.reason;
}

/** Of an engine that contradicts itself nothing is kept. */
function isWrong(reason: unknown): boolean {
  if (!(reason instanceof ServiceError)) return false;
  return reason.code === "engine_bad_reply" || reason.code === "token_invariant";
}

function attempt<T>(work: () => T): T | null {
  try {
    return work();
  } catch (error) {
    if (error instanceof ServiceError) return null;
    throw error;
  }
}

const NO_TOKENS: RawTokens = { ...NOTHING_SAID, tokenIds: [], logprobs: [], finish: "abort" };

function routeFrom({ id, profile }: Backend): TokenRoute {
  const rung = profile?.rung ?? "chat";
  if (!profile || rung === "chat" || rung === "chat_ids") {
    const message = `backend "${id}" takes messages only, not token ids`;
    const mend = "use an engine that generates from token ids, or run the rollout in text mode";
    throw new ServiceError("engine_refused", message, { mend });
  }
  const { max_model_len: maxModelLen, logprobs, logprobs_mode, streams = false } = profile;
  return { rung, maxModelLen, logprobs, logprobsMode: logprobs_mode ?? null, streams };
}

/**
 * As many as are wanted, and fit. A number is always sent, because engines have defaults of their
 * own.
 */
function tokensToAskFor(
  { shown }: Endpoint,
  { promptIds, sampling }: GenerateRequest,
  maxModelLen: number | null,
): number {
  const { max_tokens } = sampling;
  if (maxModelLen === null) {
    if (max_tokens !== undefined) return max_tokens;
    const message = `${shown} does not say how long its context is`;
    const mend = "set sampling.max_tokens";
    throw new ServiceError("invalid_field", message, { field: "sampling.max_tokens", mend });
  }
  const room = maxModelLen - promptIds.length;
  if (room >= 1) return Math.min(max_tokens ?? room, room);
  const message = `${shown}: a prompt of ${promptIds.length} tokens leaves no room in ${maxModelLen}`;
  throw new ServiceError("context_exhausted", message);
}
