import { endpointOf } from "./endpoint.ts";
import type { Backend } from "./engine.ts";
import { askEngine } from "./engine-call.ts";
import type { Connections } from "./exchange.ts";

const TIMEOUT_MS = 2_000;
const MAX_REPLY_BYTES = 64 * 1024;
const NO_RETRIES = { maxRetries: 0, backoffMs: 1, maxBackoffMs: 1 };
/** A call that was tried again has another id each time, see `engine-call.ts`. */
const RETRY_SUFFIXES = ["", ".r1", ".r2", ".r3", ".r4"];

/**
 * Asks an engine to end a call, which then answers with what it has sampled. False where it has no such
 * route, or does not do it; never fails.
 *
 * Source: vLLM `POST /abort_requests` (development mode), SGLang `POST /abort_request`, which ends all whose
 * id begins so.
 */
export async function stopInEngine(
  connections: Connections,
  backend: Backend,
  requestId: string,
): Promise<boolean> {
  const { profile } = backend;
  if (!profile?.control) return false;
  const isSglang = profile.kind === "sglang";
  const ids = RETRY_SUFFIXES.map((suffix) => `${requestId}${suffix}`);
  const call = {
    endpoint: endpointOf(backend),
    method: "POST" as const,
    root: "root" as const,
    path: isSglang ? "/abort_request" : "/abort_requests",
    headers: {},
    body: () => (isSglang ? { rid: requestId, abort_all: false } : { request_ids: ids }),
    requestId: `${requestId}.stop`,
    timeoutMs: TIMEOUT_MS,
    maxReplyBytes: MAX_REPLY_BYTES,
  };
  try {
    await askEngine(connections, call, NO_RETRIES, new AbortController().signal);
    return true;
  } catch {
    return false;
  }
}
