import { ServiceError } from "../errors.ts";
import { ejected, type HealthLimits, probed } from "./balance/health.ts";
import type { Backend } from "./engine.ts";
import type { EngineChoice } from "./engine-profile.ts";
import { BrokenExchange, Connections, exchange } from "./exchange.ts";
import { differenceOf } from "./one-pool.ts";
import { type Probed, type ProbeOptions, probeBackend } from "./probe.ts";
import type { Registered } from "./registered.ts";
import type { BackendRegistry } from "./registry.ts";

export type BackendWatchOptions = {
  registry: BackendRegistry;
  clock: { nowMs(): number };
  health: HealthLimits;
  probeTimeoutMs: number;
  probe?(url: string, options: ProbeOptions): Promise<Probed>;
  /** A backend was found to be another engine than before, and can be used as that. */
  changed(backend: Backend): void;
  /** Somebody may go on now. */
  plan(): void;
};

const LOOK_MS = 100;
/** Of an answer that is a sign of life only. */
const SIGN_BYTES = 64 * 1024;

/**
 * Probes backends that were taken out, and those whose answers say that they are no longer what they were.
 * Only a probe that really generated lets one in again.
 */
export class BackendWatch implements Disposable {
  readonly #options: BackendWatchOptions;
  readonly #timer: Timer;
  readonly #probing = new Set<string>();
  readonly #ended = new AbortController();

  constructor(options: BackendWatchOptions) {
    this.#options = options;
    this.#timer = setInterval(() => this.#look(), LOOK_MS);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
    this.#ended.abort();
  }

  #look(): void {
    const nowMs = this.#options.clock.nowMs();
    for (const entry of this.#options.registry.list()) {
      const { health, suspect, backend } = entry;
      const due = health.state === "ejected" && health.probeAtMs <= nowMs;
      if ((!due && !suspect) || this.#probing.has(backend.id)) continue;
      this.#probing.add(backend.id);
      this.#probe(entry).finally(() => this.#probing.delete(backend.id));
    }
  }

  async #probe(entry: Registered): Promise<void> {
    const { clock, health: limits, changed, plan, registry } = this.#options;
    const problem = await this.#problemOf(entry);
    // It may have been removed or added anew meanwhile.
    if (registry.get(entry.backend.id) !== entry) return;
    const nowMs = clock.nowMs();
    if (entry.suspect) {
      entry.suspect = false;
      entry.provenMs = nowMs;
      if (problem !== null) entry.health = ejected(entry.health, problem, nowMs, limits);
    } else entry.health = probed(entry.health, problem, nowMs, limits);
    if (problem === null) changed(entry.backend);
    plan();
  }

  /** Why it can't be used now; null where it can, and then its profile is as it is now. */
  async #problemOf(entry: Registered): Promise<string | null> {
    const { backend } = entry;
    const { id, url, model, apiKey, networks } = backend;
    const { probe = probeBackend, probeTimeoutMs: timeoutMs } = this.#options;
    if (backend.routed) return whyUnreachable(backend, timeoutMs, this.#ended.signal);
    const bounds = networks === undefined ? {} : { networks };
    const key = apiKey === undefined ? {} : { apiKey };
    const options = { id, model, ...bounds, ...key, engine: choiceOf(backend), timeoutMs };
    try {
      const found = await probe(url, { ...options, signal: this.#ended.signal });
      const now = { ...backend, ...found };
      const difference = backend.profile ? differenceOf(backend, now) : null;
      if (difference !== null) return `it came back as another: ${difference.what}`;
      entry.backend = now;
      return null;
    } catch (error) {
      return error instanceof ServiceError ? error.message : String(error);
    }
  }
}

/** Of an address that is not known to serve anything but rollouts' calls, any answer is a sign of life. */
async function whyUnreachable(
  { url, networks }: Backend,
  timeoutMs: number,
  ended: AbortSignal,
): Promise<string | null> {
  using connections = new Connections();
  const base = new URL(url);
  const request = { base, networks, path: base.pathname, headers: {}, body: null };
  const limits = { method: "GET" as const, maxReplyBytes: SIGN_BYTES, fresh: true };
  try {
    const signal = AbortSignal.any([ended, AbortSignal.timeout(timeoutMs)]);
    await exchange(connections, { ...request, ...limits }, signal);
    return null;
  } catch (error) {
    if (error instanceof BrokenExchange && error.kind === "oversized") return null;
    return (error as Error).message;
  }
}

/** One that was added as text is not asked for tokens. */
function choiceOf({ profile }: Backend): EngineChoice {
  const asText = profile?.rung === "chat" && profile.passed_over.length === 0;
  return asText || !profile ? "text" : "auto";
}
