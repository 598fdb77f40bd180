import { type ErrorBody, ServiceError } from "../errors.ts";
import { abortable, atMost } from "../lib/abortable.ts";
import { allowance, callFailed, callSucceeded, type HealthLimits } from "./balance/health.ts";
import { isThrashing, mayLeave } from "./balance/thrash.ts";
import type { Backend } from "./engine.ts";
import type { Arrival, Trajectory } from "./live-trajectory.ts";
import type { Registered } from "./registered.ts";
import type { BackendRegistry } from "./registry.ts";
import {
  type CallKey,
  type FromTurn,
  type ToTurn,
  TRIED_AGAIN,
  type TurnEnded,
  type TurnWanted,
} from "./turn-messages.ts";

export type TurnDeskOptions = {
  registry: BackendRegistry;
  clock: { nowMs(): number };
  health: HealthLimits;
  /** How often a call is tried again, on whatever backend. */
  maxRetries: number;
  /** How long a call waits for a backend that works. Units: milliseconds. */
  backendWaitMs: number;
  /** Most turns of one backend at once. */
  maxTurns: number;
  /** A trajectory is over that lived on `backend`. */
  sessionEnded?(backend: Backend, jobId: string): void;
};

type Waiting = {
  key: CallKey;
  /** Backends where this call came to nothing. */
  failedOn: string[];
  /** Since when no backend works; null while one does. */
  stuckSinceMs: number | null;
};

type Granted = { key: CallKey; backendId: string };

const SWEEP_MS = 100;
const KEPT_MOVES = 1_000;
/** What a probe has found to be unchanged is not probed again so soon. */
const PROVEN_FOR_MS = 30_000;

/**
 * Gives leave for each call of a model, in the order in which it was asked for, so that all threads share
 * one count of what each backend works on. A call waits here while its backend has enough to do, while
 * another has to be found, and while weights change.
 */
export class TurnDesk implements Disposable {
  readonly registry: BackendRegistry;
  readonly #options: TurnDeskOptions;
  readonly #waiting = new Map<string, Waiting>();
  readonly #granted = new Map<string, Granted>();
  #tell: (message: ToTurn) => void = () => {};
  #wake: () => void = () => {};
  readonly #quiet = new Set<() => void>();
  #paused = false;
  /** What was announced last; stamped on each lease. */
  weightVersion: string | null = null;
  #planned = false;
  /** Whether a trajectory would have found a backend when it was last looked. */
  #wasAvailable = false;
  #timer: Timer | undefined;

  constructor(options: TurnDeskOptions) {
    this.#options = options;
    this.registry = options.registry;
  }

  get waiting(): number {
    return this.#waiting.size;
  }

  get granted(): number {
    return this.#granted.size;
  }

  /** @param wake is called when a trajectory that found no backend may find one now, and when the weights are others */
  connect(tell: (message: ToTurn) => void, wake: () => void): void {
    this.#tell = tell;
    this.#wake = wake;
  }

  available(): boolean {
    return this.registry.available();
  }

  acquire(arrival: Arrival): Backend {
    const backend = this.registry.acquire(arrival);
    this.#wasAvailable = this.registry.available();
    return backend;
  }

  /** The trajectory is over, and with it whatever calls it had. */
  release(jobId: string, whole: boolean): void {
    for (const [id, { key }] of this.#waiting) if (key.jobId === jobId) this.#waiting.delete(id);
    for (const [id, granted] of this.#granted) {
      if (granted.key.jobId === jobId) this.#giveBack(id, granted);
    }
    const trajectory = this.registry.trajectory(jobId);
    const backend = trajectory && this.registry.get(trajectory.backendId)?.backend;
    this.registry.release(jobId, whole);
    if (backend) this.#options.sessionEnded?.(backend, jobId);
    this.plan();
  }

  /** How long calls of a trajectory have waited here, for whatever reason. */
  waitedMs(jobId: string): number {
    const trajectory = this.registry.trajectory(jobId);
    return trajectory ? this.registry.waitedMs(trajectory) : 0;
  }

  receive(event: FromTurn): void {
    if (event.type === "turn_wanted") this.#want(event);
    else this.#ended(event);
    // Where nobody else waits there is no order to keep, and no reason to wait either.
    if (event.type === "turn_wanted" && this.#waiting.size === 1) this.#grantAll();
    else this.plan();
  }

  /** No further calls until `resume`. Those that run are ended with `abort`, to be gone on with later. */
  pause(mode: "drain" | "abort" | "keep"): void {
    this.#paused = true;
    if (mode !== "abort") return;
    for (const { key } of this.#granted.values()) this.#tell({ type: "turn_stopped", ...key });
  }

  resume(): void {
    this.#paused = false;
    this.plan();
  }

  /**
   * Other weights from now on, also for calls that run; null where nobody knows which. What is too old for them is
   * seen in the tick that follows.
   */
  reweigh(version: string | null): void {
    this.weightVersion = version;
    this.#wake();
    for (const { key } of this.#granted.values()) this.#tell({ type: "turn_reweighed", ...key });
  }

  /** Whether no call runs any more, at the latest after `waitMs`. @throws the reason of `signal` */
  async quiet(waitMs: number, signal: AbortSignal): Promise<boolean> {
    if (this.#granted.size === 0) return true;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#quiet.add(resolve);
    try {
      await abortable(atMost(promise, waitMs, undefined), signal);
    } finally {
      this.#quiet.delete(resolve);
    }
    return this.#granted.size === 0;
  }

  /** Looks again who can go, once for all that happens in one turn of the event loop. */
  plan(): void {
    if (this.#planned) return;
    this.#planned = true;
    setImmediate(() => {
      this.#planned = false;
      this.#grantAll();
      const available = this.registry.available();
      if (available && !this.#wasAvailable) this.#wake();
      this.#wasAvailable = available;
    });
  }

  [Symbol.dispose](): void {
    clearTimeout(this.#timer);
  }

  #want({ jobId, attempt, call, contextTokens, failed, failedOn }: TurnWanted): void {
    const key = { jobId, attempt, call };
    const trajectory = this.registry.trajectory(jobId);
    // Its job was ended meanwhile, and its thread has been told.
    if (!trajectory) return;
    this.registry.wants(trajectory);
    if (contextTokens !== null) this.registry.advance(trajectory, contextTokens, 0);
    if (failed && failedOn.length > retriesOf(failed, this.#options.maxRetries)) {
      this.registry.rests(trajectory);
      this.#tell({ type: "turn_denied", ...key, error: asRefused(failed) });
      return;
    }
    this.#waiting.set(idOf(key), { key, failedOn, stuckSinceMs: null });
  }

  #ended(event: TurnEnded): void {
    const id = idOf(event);
    const granted = this.#granted.get(id);
    if (!granted) return;
    this.#giveBack(id, granted);
    const { jobId, contextTokens, sampledTokens } = event;
    const trajectory = this.registry.trajectory(jobId);
    if (trajectory) this.registry.advance(trajectory, contextTokens, sampledTokens);
    const entry = this.registry.get(granted.backendId);
    if (entry) this.#judge(entry, event);
  }

  #judge(entry: Registered, { error, load }: TurnEnded): void {
    const nowMs = this.#options.clock.nowMs();
    if (load) entry.engine = load;
    if (!error) entry.health = callSucceeded(entry.health, nowMs);
    else if (error.code === "engine_changed") {
      if (nowMs - entry.provenMs > PROVEN_FOR_MS) entry.suspect = true;
    } else if (TRIED_AGAIN.has(error.code) || error.code === "token_invariant") {
      const failure = { unreachable: error.code === "engine_unreachable", why: error.message };
      entry.health = callFailed(entry.health, failure, nowMs, this.#options.health);
    }
  }

  #grantAll(): void {
    if (this.#paused) {
      // The time in which nobody may go is none in which no backend works.
      for (const waiting of this.#waiting.values()) waiting.stuckSinceMs = null;
      return;
    }
    const nowMs = this.#options.clock.nowMs();
    for (const [id, waiting] of this.#waiting) {
      const trajectory = this.registry.trajectory(waiting.key.jobId);
      if (!trajectory) this.#waiting.delete(id);
      else if (!this.#grant(id, waiting, trajectory)) {
        this.#refuseLate(id, waiting, trajectory, nowMs);
      }
    }
    clearTimeout(this.#timer);
    if (this.#waiting.size > 0) this.#timer = setTimeout(() => this.plan(), SWEEP_MS);
  }

  /** False where no backend works; one that has enough to do is only to be waited for. */
  #grant(id: string, waiting: Waiting, trajectory: Trajectory): boolean {
    const entry = this.#backendFor(waiting, trajectory);
    if (!entry) return false;
    waiting.stuckSinceMs = null;
    if (entry.suspect || !this.registry.isHeld(trajectory)) return true;
    const { admission, health, turns } = entry;
    if (turns >= admission.limit) admission.reached = true;
    const most = Math.min(this.#options.maxTurns, admission.limit, allowance(health));
    if (turns >= most) return true;
    const { key } = waiting;
    this.#waiting.delete(id);
    this.#granted.set(id, { key, backendId: entry.backend.id });
    entry.turns++;
    trajectory.turnsHere++;
    this.registry.goes(trajectory);
    const { weightVersion } = this;
    this.#tell({ type: "turn_granted", ...key, backend: entry.backend, weightVersion });
    return true;
  }

  /** Its own, where that can still be used; otherwise it moves, or has to wait. */
  #backendFor({ failedOn }: Waiting, trajectory: Trajectory): Registered | undefined {
    const own = this.registry.get(trajectory.backendId);
    if (own && isThrashing(own.thrash)) this.#leaveThrash(own, trajectory);
    if (own && own.backend.id !== trajectory.backendId)
      return this.registry.get(trajectory.backendId);
    const cause = own ? this.#leaves(own, failedOn) : "its backend is gone";
    if (cause === null) return this.registry.relieve(trajectory) ?? own;
    if (this.registry.move(trajectory, cause, failedOn)) {
      return this.registry.get(trajectory.backendId);
    }
    // With no other to go to, one where the call failed before is better than none.
    const usable = own && own.leaving !== "move" && own.health.state !== "ejected";
    if (usable) return own;
    return this.registry.move(trajectory, cause, [])
      ? this.registry.get(trajectory.backendId)
      : undefined;
  }

  /** Few of the smaller ones go elsewhere, where there is an elsewhere. */
  #leaveThrash(own: Registered, trajectory: Trajectory): void {
    const nowMs = this.#options.clock.nowMs();
    const { live, contextTokens, leftAtMs: movedAtMs, backend } = own;
    if (!mayLeave(trajectory, { live, contextTokens, movedAtMs }, nowMs)) return;
    if (!this.registry.move(trajectory, `${backend.id} thrashes`, [backend.id])) return;
    own.leftAtMs = [...movedAtMs.slice(-KEPT_MOVES), nowMs];
  }

  /** Why a trajectory must not go on there; null where it may. The first failure is tried again there. */
  #leaves({ backend, health, leaving }: Registered, failedOn: string[]): string | null {
    if (health.state === "ejected") return `${backend.id} is not healthy: ${health.why}`;
    if (leaving === "move") return `${backend.id} is drained`;
    const failures = failedOn.filter((id) => id === backend.id).length;
    return failures > 1 ? `the call failed ${failures} times on ${backend.id}` : null;
  }

  #refuseLate(id: string, waiting: Waiting, trajectory: Trajectory, nowMs: number): void {
    waiting.stuckSinceMs ??= nowMs;
    if (nowMs - waiting.stuckSinceMs < this.#options.backendWaitMs) return;
    this.#waiting.delete(id);
    this.registry.rests(trajectory);
    this.#tell({ type: "turn_denied", ...waiting.key, error: this.#nothingWorks() });
  }

  #nothingWorks(): ErrorBody {
    const states = this.registry.list().map(({ backend, health, leaving }) => {
      return `${backend.id}: ${leaving ? "drained" : (health.why ?? health.state)}`;
    });
    const what = states.length === 0 ? "there is none" : states.join("; ");
    const message = `no backend worked for ${this.#options.backendWaitMs} ms (${what})`;
    return new ServiceError("engine_unreachable", message).toBody();
  }

  #giveBack(id: string, { key, backendId }: Granted): void {
    this.#granted.delete(id);
    const trajectory = this.registry.trajectory(key.jobId);
    if (trajectory) this.registry.rests(trajectory);
    const entry = this.registry.get(backendId);
    if (entry) entry.turns--;
    if (this.#granted.size === 0) for (const resolve of this.#quiet) resolve();
  }
}

/** What an engine refuses that is still the same, it refuses for good. */
function retriesOf(failed: ErrorBody, maxRetries: number): number {
  return failed.code === "engine_changed" ? Math.min(1, maxRetries) : maxRetries;
}

function asRefused(failed: ErrorBody): ErrorBody {
  if (failed.code !== "engine_changed") return failed;
  const options = failed.mend === undefined ? {} : { mend: failed.mend };
  return new ServiceError("engine_refused", failed.message, options).toBody();
}

function idOf({ jobId, attempt, call }: CallKey): string {
  return `${jobId}.${attempt}.${call}`;
}
