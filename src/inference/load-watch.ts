import { ServiceError } from "../errors.ts";
import { adjusted } from "./balance/admission.ts";
import { callFailed, type HealthLimits } from "./balance/health.ts";
import { thrashAfter } from "./balance/thrash.ts";
import { endpointOf } from "./endpoint.ts";
import { askEngine } from "./engine-call.ts";
import { type EngineLoad, readLoads, readMetrics } from "./engine-load.ts";
import { Connections } from "./exchange.ts";
import { isUnknownThere } from "./refusal.ts";
import type { Registered } from "./registered.ts";
import type { BackendRegistry } from "./registry.ts";

export type LoadWatchOptions = {
  registry: BackendRegistry;
  clock: { nowMs(): number };
  health: HealthLimits;
  /** Units: milliseconds. */
  pollMs: number;
  /** Most turns of one backend at once. */
  maxTurns: number;
  plan(): void;
};

/** Least turns of one backend at once, however full it is. */
const MIN_TURNS = 4;
const TIMEOUT_MS = 2_000;
const MAX_REPLY_BYTES = 4 * 1024 * 1024;
const NO_RETRIES = { maxRetries: 0, backoffMs: 1, maxBackoffMs: 1 };

type Known = { source: number; last: EngineLoad | null };

/** Where a load is to be had, the best first; the last says only that somebody is there. */
const SOURCES: { path: string; read(body: string): EngineLoad | null }[] = [
  { path: "/metrics", read: readMetrics },
  { path: "/v1/loads?include=core", read: (body) => readLoads(JSON.parse(body)) },
  { path: "/get_load", read: (body) => readLoads(JSON.parse(body)) },
  { path: "/health", read: () => null },
];

/**
 * Asks engines for their load at an interval, and lets the number of turns at once follow their memory. An
 * engine that can't be reached is as good as a failed call, so that one nobody calls is known to be dead too.
 */
export class LoadWatch implements Disposable {
  readonly #options: LoadWatchOptions;
  readonly #connections = new Connections();
  readonly #timer: Timer;
  readonly #ended = new AbortController();
  readonly #asking = new WeakSet<Registered>();
  /** By backend: which source it has, and what it counted last. */
  readonly #known = new WeakMap<Registered, Known>();

  constructor(options: LoadWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.look(), options.pollMs);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#ended.abort();
    this.#connections[Symbol.dispose]();
  }

  look(): void {
    for (const entry of this.#options.registry.list()) {
      const { kind } = entry.backend.profile ?? {};
      if ((kind !== "vllm" && kind !== "sglang") || this.#asking.has(entry)) continue;
      if (entry.health.state === "ejected") continue;
      this.#asking.add(entry);
      this.#ask(entry).finally(() => this.#asking.delete(entry));
    }
  }

  async #ask(entry: Registered): Promise<void> {
    const known = this.#known.get(entry) ?? { source: 0, last: null };
    this.#known.set(entry, known);
    try {
      const { path, read } = SOURCES[known.source] as (typeof SOURCES)[number];
      const load = read(await this.#get(entry, path));
      if (load) this.#take(entry, load, known);
      else if (known.source < SOURCES.length - 1) known.source++;
    } catch (error) {
      if (this.#ended.signal.aborted) return;
      if (error instanceof ServiceError && error.code === "engine_unreachable") {
        const failure = { unreachable: true, why: error.message };
        const { clock, health, plan } = this.#options;
        entry.health = callFailed(entry.health, failure, clock.nowMs(), health);
        plan();
        return;
      }
      const missing = !(error instanceof ServiceError) || isUnknownThere(error);
      if (missing && known.source < SOURCES.length - 1) known.source++;
    }
  }

  async #get({ backend }: Registered, path: string): Promise<string> {
    const call = {
      ...{ endpoint: endpointOf(backend), method: "GET" as const, root: "root" as const, path },
      ...{ headers: {}, body: null, requestId: `load.${backend.id}`, timeoutMs: TIMEOUT_MS },
      maxReplyBytes: MAX_REPLY_BYTES,
    };
    const answer = await askEngine(this.#connections, call, NO_RETRIES, this.#ended.signal);
    return new TextDecoder().decode(answer.body);
  }

  #take(entry: Registered, load: EngineLoad, known: Known): void {
    const { running, waiting, kvUse, kvTokens } = load;
    const bounds = { floor: MIN_TURNS, ceiling: this.#options.maxTurns };
    entry.engine = { running, waiting };
    entry.kvUse = kvUse;
    entry.kvTokens = kvTokens;
    const since = (name: "preemptions" | "cacheQueries" | "cacheHits") => {
      const now = load[name] ?? 0;
      return Math.max(0, now - (known.last?.[name] ?? now));
    };
    const preemptions = since("preemptions");
    const queries = since("cacheQueries");
    const hitShare = queries === 0 ? null : since("cacheHits") / queries;
    known.last = load;
    const sample = { kvUse, turns: entry.turns, waiting, preemptions };
    entry.admission = adjusted(entry.admission, sample, bounds);
    entry.thrash = thrashAfter(entry.thrash, { preemptions, hitShare });
    this.#options.plan();
  }
}
