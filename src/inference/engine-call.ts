import { ServiceError } from "../errors.ts";
import { pause } from "../lib/abortable.ts";
import { jsonWithTools } from "../lib/exact-tools.ts";
import { type Endpoint, type RouteRoot, routeOf } from "./endpoint.ts";
import {
  type Answer,
  type BreakKind,
  BrokenExchange,
  type Connections,
  exchange,
} from "./exchange.ts";
import { refusalOf } from "./refusal.ts";
import { parseReply } from "./reply-json.ts";

export type EngineCall = {
  endpoint: Endpoint;
  method: "GET" | "POST";
  root: RouteRoot;
  /** Below `root`, with a slash in front. */
  path: string;
  headers: Record<string, string>;
  /** What is sent as JSON under a request id; null for a request without a body. */
  body: ((requestId: string) => unknown) | null;
  requestId: string;
  timeoutMs: number;
  maxReplyBytes: number;
  /** Gets an answer that is a stream of events, as it comes; what it throws ends the call. */
  onEvents?: (chunk: Uint8Array) => void;
};

/**
 * How long an engine that is busy is asked again. The wait grows by half to one and a half times
 * itself.
 */
export type RetryLimits = { maxRetries: number; backoffMs: number; maxBackoffMs: number };

export const RETRY_LIMITS: RetryLimits = { maxRetries: 3, backoffMs: 250, maxBackoffMs: 5_000 };

const BUSY = new Set([429, 502, 503, 504]);

const BREAK_CODES = {
  unreachable: "engine_unreachable",
  reset: "engine_unreachable",
  lost: "engine_unreachable",
  garbage: "engine_bad_reply",
  oversized: "engine_bad_reply",
} as const satisfies Record<BreakKind, string>;

/** The JSON of an engine's answer. @throws as `askEngine`; `token_invariant` for NaN in it. */
export async function callEngine(
  connections: Connections,
  call: EngineCall,
  limits: RetryLimits,
  signal: AbortSignal,
): Promise<unknown> {
  const { body } = await askEngine(connections, call, limits, signal);
  return parseReply(call.endpoint.shown, body);
}

/**
 * Calls an engine until it answers with 2xx, its time is over, or trying again makes no sense. It
 * is tried again at once, on a new connection, where the connection ended before an answer (engines
 * close idle ones), and after a pause where the engine is busy; each time under a request id of its
 * own.
 *
 * @throws ServiceError `engine_*`, `context_exhausted`; the reason of `signal` as it is.
 */
export async function askEngine(
  connections: Connections,
  call: EngineCall,
  limits: RetryLimits,
  signal: AbortSignal,
): Promise<Answer> {
  signal.throwIfAborted();
  const { endpoint, timeoutMs } = call;
  const ended = new AbortController();
  const onAbort = () => ended.abort(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  const timer = setTimeout(() => {
    const message = `${endpoint.shown} did not answer within ${timeoutMs} ms`;
    ended.abort(new ServiceError("engine_timeout", message));
  }, timeoutMs);
  try {
    return await callUntilAnswered(connections, call, limits, ended.signal);
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", onAbort);
  }
}

async function callUntilAnswered(
  connections: Connections,
  call: EngineCall,
  limits: RetryLimits,
  signal: AbortSignal,
): Promise<Answer> {
  const { endpoint, requestId } = call;
  const deadlineMs = performance.now() + call.timeoutMs;
  let resets = 0;
  let refusals = 0;
  for (;;) {
    const tries = resets + refusals;
    const request = requestOf(call, tries === 0 ? requestId : `${requestId}.r${tries}`);
    let answer: Answer;
    try {
      answer = await exchange(connections, { ...request, fresh: resets > 0 }, signal);
    } catch (error) {
      if (!(error instanceof BrokenExchange)) throw error;
      if (error.kind === "reset" && resets++ === 0) continue;
      throw brokenCall(endpoint, error);
    }
    const { status } = answer;
    if (status >= 200 && status < 300) return answer;
    if (!BUSY.has(status) || refusals === limits.maxRetries) throw refusalOf(endpoint, answer);
    const waitMs = waitBefore(++refusals, answer, limits);
    if (performance.now() + waitMs >= deadlineMs) throw refusalOf(endpoint, answer);
    await pause(waitMs, signal);
  }
}

function requestOf(call: EngineCall, requestId: string) {
  const { endpoint, root, method, path, headers, body, maxReplyBytes, onEvents } = call;
  const bytes = body === null ? null : Buffer.from(jsonWithTools(body(requestId) as object));
  const all: Record<string, string> = {
    Accept: onEvents ? "text/event-stream, application/json" : "application/json",
    "Accept-Encoding": "identity",
    "X-Request-Id": requestId,
    ...headers,
  };
  if (endpoint.apiKey !== undefined) all.Authorization = `Bearer ${endpoint.apiKey}`;
  if (bytes) {
    all["Content-Type"] = "application/json";
    all["Content-Length"] = String(bytes.byteLength);
  }
  const { base, networks } = endpoint;
  const target = { base, networks, path: routeOf(endpoint, root, path) };
  const events = onEvents && { onEvents };
  return { ...target, method, headers: all, body: bytes, maxReplyBytes, ...events };
}

/**
 * At least what the engine asks for, and spread, so that rollouts that were refused together part.
 */
function waitBefore(refusals: number, { headers }: Answer, limits: RetryLimits): number {
  const stepMs = Math.min(limits.backoffMs * 2 ** (refusals - 1), limits.maxBackoffMs);
  const ownMs = stepMs * (0.5 + Math.random());
  const askedMs = retryAfterMs(headers["retry-after"]);
  return askedMs === null ? ownMs : askedMs + ownMs / 2;
}

function retryAfterMs(header: string | undefined): number | null {
  if (header === undefined) return null;
  const seconds = Number(header);
  if (Number.isFinite(seconds)) return Math.max(0, seconds * 1000);
  const dateMs = Date.parse(header);
  return Number.isNaN(dateMs) ? null : Math.max(0, dateMs - Date.now());
}

function brokenCall({ shown }: Endpoint, broken: BrokenExchange): ServiceError {
  const message = `${shown}: ${broken.message}`;
  if (broken.kind !== "oversized") {
    return new ServiceError(BREAK_CODES[broken.kind], message, { cause: broken });
  }
  const mend = "lower max_tokens, or raise max_reply_bytes";
  return new ServiceError("engine_bad_reply", message, { mend, cause: broken });
}
