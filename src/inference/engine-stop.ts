import { endpointOf } from "./endpoint.ts";
import type { Backend } from "./engine.ts";
import { askEngine } from "./engine-call.ts";
import type { Rung } from "./engine-profile.ts";
import type { Connections } from "./exchange.ts";

const TIMEOUT_MS = 2_000;
const MAX_REPLY_BYTES = 64 * 1024;
const NO_RETRIES = { maxRetries: 0, backoffMs: 1, maxBackoffMs: 1 };
/** A call that was tried again has another id each time, see `engine-call.ts`. */
const RETRY_SUFFIXES = ["", ".r1", ".r2", ".r3", ".r4"];

/**
 * What vLLM calls a request inside: by its route, and the number of the prompt where there may be several.
 *
 * Source: tried with vLLM 0.32.
 */
const VLLM_NAMES: Partial<Record<Rung, (id: string) => string>> = {
  inference_generate: (id) => `generate-tokens-${id}`,
  completions: (id) => `cmpl-${id}-0`,
  completions_text_ids: (id) => `cmpl-${id}-0`,
};

/**
 * Asks an engine to end a call, which then answers with what it has sampled. False where it has no such
 * route, or does not do it; never fails.
 *
 * Source: vLLM `POST /inference/v1/abort_requests` beside its generate route, and `POST /abort_requests` in
 * development mode; SGLang `POST /abort_request`, which ends all whose id begins so.
 */
export async function stopInEngine(
  connections: Connections,
  backend: Backend,
  requestId: string,
): Promise<boolean> {
  for (const { path, body } of waysToStop(backend, requestId)) {
    const call = {
      endpoint: endpointOf(backend),
      ...{ method: "POST" as const, root: "root" as const, path, headers: {}, body: () => body },
      requestId: `${requestId}.stop`,
      ...{ timeoutMs: TIMEOUT_MS, maxReplyBytes: MAX_REPLY_BYTES },
    };
    try {
      await askEngine(connections, call, NO_RETRIES, new AbortController().signal);
      return true;
    } catch {
      // Not every build has each of the routes.
    }
  }
  return false;
}

function waysToStop({ profile }: Backend, requestId: string): { path: string; body: object }[] {
  if (profile?.kind === "sglang") {
    return [{ path: "/abort_request", body: { rid: requestId, abort_all: false } }];
  }
  const name = profile && VLLM_NAMES[profile.rung];
  if (!name) return [];
  const body = { request_ids: RETRY_SUFFIXES.map((suffix) => name(`${requestId}${suffix}`)) };
  const paths = profile.rung === "inference_generate" ? ["/inference/v1/abort_requests"] : [];
  if (profile.control) paths.push("/abort_requests");
  return paths.map((path) => ({ path, body }));
}
