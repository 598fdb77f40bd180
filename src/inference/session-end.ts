import { ServiceError } from "../errors.ts";
import { endpointOf } from "./endpoint.ts";
import type { Backend } from "./engine.ts";
import { askEngine } from "./engine-call.ts";
import { Connections } from "./exchange.ts";
import { isUnknownThere } from "./refusal.ts";

const TIMEOUT_MS = 2_000;
const MAX_REPLY_BYTES = 64 * 1024;
const NO_RETRIES = { maxRetries: 0, backoffMs: 1, maxBackoffMs: 1 };
/** More at once are left to the router's own limit of idle sessions. */
const MAX_AT_ONCE = 64;

/**
 * Tells routers that a rollout is over, where they keep sessions (`POST /finish_session`). It is told as well as
 * it goes: nothing waits for it, and one that has no such route is asked once only.
 */
export class SessionEnds implements Disposable {
  readonly #connections = new Connections();
  readonly #ended = new AbortController();
  readonly #without = new Set<string>();
  /** Of each backend that was told of one, the first time. */
  readonly #first = new Map<string, Promise<void>>();
  #running = 0;

  /** Resolves, and never fails, when it was told, or was not to be told. */
  async tell(backend: Backend, sessionId: string): Promise<void> {
    const { id, profile } = backend;
    if (!profile || profile.kind === "openai" || this.#without.has(id)) return;
    if (this.#running >= MAX_AT_ONCE) return;
    this.#running++;
    const told = this.#tell(backend, sessionId, this.#first.get(id));
    if (!this.#first.has(id)) this.#first.set(id, told);
    await told;
    this.#running--;
  }

  /** After the first answer: of a whole group that ends one asks, where there is no such route. */
  async #tell(backend: Backend, sessionId: string, first: Promise<void> | undefined) {
    await first;
    if (this.#without.has(backend.id)) return;
    const call = {
      ...{ endpoint: endpointOf(backend), method: "POST" as const, root: "root" as const },
      path: `/finish_session?session_id=${encodeURIComponent(sessionId)}`,
      ...{ headers: {}, body: null, requestId: `${sessionId}.end`, timeoutMs: TIMEOUT_MS },
      maxReplyBytes: MAX_REPLY_BYTES,
    };
    try {
      await askEngine(this.#connections, call, NO_RETRIES, this.#ended.signal);
    } catch (error) {
      if (error instanceof ServiceError && isUnknownThere(error)) this.#without.add(backend.id);
    }
  }

  [Symbol.dispose](): void {
    this.#ended.abort();
    this.#connections[Symbol.dispose]();
  }
}
