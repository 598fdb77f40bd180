import type { Admission } from "./balance/admission.ts";
import { type Decision, DecisionLog } from "./balance/decision-log.ts";
import { allowance, type Health, healthy } from "./balance/health.ts";
import { Lengths } from "./balance/lengths.ts";
import { type BackendLoad, type PolicyName, place } from "./balance/placement.ts";
import { hasRoom } from "./balance/room.ts";
import { NO_THRASH, type Thrash } from "./balance/thrash.ts";
import type { Backend } from "./engine.ts";
import type { InBandLoad } from "./generate.ts";

/** What becomes of the trajectories on a backend that gets no new ones. */
export type Leaving = "finish" | "move";

export type Registered = {
  backend: Backend;
  /** Whether new trajectories may come; otherwise what those that are there do. */
  leaving: Leaving | null;
  removed: boolean;
  sameNode: boolean;
  health: Health;
  /** Its answers say that it is another engine than its probe found; it is probed before it goes on. */
  suspect: boolean;
  /** When such a probe last ended. */
  provenMs: number;
  /** Trajectories that live on it, and the sums over them. */
  live: number;
  contextTokens: number;
  expectedTokens: number;
  assigned: number;
  /** Turns of ours that it works on. */
  turns: number;
  /** As its replies or its metrics last had it. */
  engine: InBandLoad | null;
  kvUse: number | null;
  /** Its memory for keys and values; null where it does not say. */
  kvTokens: number | null;
  /** How many turns it may have at once. */
  admission: Admission;
  thrash: Thrash;
  /** When trajectories left because of it. */
  leftAtMs: number[];
};

export type Trajectory = {
  readonly jobId: string;
  readonly ordinal: number;
  readonly group: string | null;
  backendId: string;
  contextTokens: number;
  sampledTokens: number;
  expectedTokens: number;
  /** Calls on this backend. */
  turnsHere: number;
};

/** A trajectory that needs a backend. `preferredId` is where it was before a restart. */
export type Arrival = Pick<Trajectory, "jobId" | "ordinal" | "group"> & {
  preferredId: string | null;
};

type RegistryOptions = { policy?: PolicyName; clock?: { nowMs(): number } };

/**
 * The inference servers, and which trajectory lives on which. A trajectory stays on the backend that it got,
 * unless that one can't be used any more.
 */
export class BackendRegistry {
  readonly decisions = new DecisionLog();
  /** How many tokens trajectories sample, and how long their contexts are in the end. */
  readonly lengths = new Lengths(2_000);
  readonly contexts = new Lengths(16_000);
  readonly #entries = new Map<string, Registered>();
  readonly #trajectories = new Map<string, Trajectory>();
  readonly #policy: PolicyName;
  readonly #clock: { nowMs(): number };
  #placements = 0;
  /** Of all trajectories together. */
  #contextTokens = 0;

  constructor({ policy = "least-work", clock = { nowMs: Date.now } }: RegistryOptions = {}) {
    this.#policy = policy;
    this.#clock = clock;
  }

  list(): Registered[] {
    return [...this.#entries.values()].filter(({ removed }) => !removed);
  }

  /** Also one that is removed, while trajectories live on it. */
  get(id: string): Registered | undefined {
    return this.#entries.get(id);
  }

  /** Whether a new trajectory would find a backend. */
  available(): boolean {
    return this.list().some((entry) => this.#closedBecause(entry) === null);
  }

  /** A new one, or the same one anew: with its trajectories, but without its past. */
  add(backend: Backend): void {
    const known = this.#entries.get(backend.id);
    const { live, contextTokens, expectedTokens, turns } = known ?? NOTHING;
    this.#entries.set(backend.id, {
      ...{ backend, live, contextTokens, expectedTokens, turns },
      leaving: null,
      removed: false,
      sameNode: isLocal(backend.url),
      health: healthy(this.#clock.nowMs()),
      suspect: false,
      provenMs: Number.NEGATIVE_INFINITY,
      assigned: 0,
      engine: null,
      kvUse: null,
      kvTokens: null,
      thrash: NO_THRASH,
      leftAtMs: [],
      admission: { limit: Number.POSITIVE_INFINITY, reached: false, rest: 0 },
    });
  }

  /** No new trajectories from now on. False where there is none of that id. */
  drain(id: string, leaving: Leaving): boolean {
    const entry = this.#entries.get(id);
    if (!entry || entry.removed) return false;
    entry.leaving = leaving;
    return true;
  }

  remove(id: string, leaving: Leaving = "finish"): boolean {
    if (!this.drain(id, leaving)) return false;
    const entry = this.#entries.get(id) as Registered;
    entry.removed = true;
    this.#forgetIfUnused(entry);
    return true;
  }

  acquire({ preferredId, ...given }: Arrival): Backend {
    const expectedTokens = this.lengths.expectedAfter(0);
    const nothing = { contextTokens: 0, sampledTokens: 0, turnsHere: 0 };
    const trajectory = { ...given, ...nothing, expectedTokens };
    const preferred = preferredId === null ? undefined : this.#entries.get(preferredId);
    const stays = preferred && this.#closedBecause(preferred) === null;
    const backendId = stays ? preferred.backend.id : this.#choose(trajectory, null, null, []);
    if (backendId === null) throw new Error("no backend to acquire; `available` tells before");
    const placed = { ...trajectory, backendId };
    this.#trajectories.set(given.jobId, placed);
    return this.#enter(placed).backend;
  }

  trajectory(jobId: string): Trajectory | undefined {
    return this.#trajectories.get(jobId);
  }

  /** Another backend for a trajectory that can't stay; null where there is none. */
  move(trajectory: Trajectory, cause: string, avoid: readonly string[]): Backend | null {
    const chosen = this.#choose(trajectory, trajectory.backendId, cause, avoid);
    if (chosen === null) return null;
    this.#leave(trajectory);
    trajectory.backendId = chosen;
    trajectory.turnsHere = 0;
    return this.#enter(trajectory).backend;
  }

  /** What a call made of a trajectory. */
  advance(trajectory: Trajectory, contextTokens: number | null, sampledTokens: number): void {
    this.#count(trajectory, -1);
    trajectory.contextTokens = contextTokens ?? trajectory.contextTokens + sampledTokens;
    trajectory.sampledTokens += sampledTokens;
    trajectory.expectedTokens = this.lengths.expectedAfter(trajectory.sampledTokens);
    this.#count(trajectory, 1);
  }

  /** @param whole whether it came to an end of its own, so that its length is one to learn from */
  release(jobId: string, whole: boolean): Trajectory | undefined {
    const trajectory = this.#trajectories.get(jobId);
    if (!trajectory) return undefined;
    this.#trajectories.delete(jobId);
    this.#leave(trajectory);
    if (whole) {
      this.lengths.add(trajectory.sampledTokens);
      this.contexts.add(trajectory.contextTokens);
    }
    return trajectory;
  }

  /** Why a backend takes no new trajectory; null where it does. */
  #closedBecause(entry: Registered): string | null {
    const closed = closedBecause(entry);
    if (closed !== null || entry.kvTokens === null || entry.live === 0) return closed;
    const finalContext = this.contexts.meanInTheEnd(this.#contextTokens);
    return hasRoom(entry, finalContext) ? null : "its memory is full of contexts";
  }

  #choose(
    newcomer: Omit<Trajectory, "backendId">,
    from: string | null,
    cause: string | null,
    avoid: readonly string[],
  ): string | null {
    const closed = (entry: Registered) =>
      avoid.includes(entry.backend.id) ? "the call failed there" : this.#closedBecause(entry);
    const entries = this.list();
    const pool = entries.filter((entry) => closed(entry) === null);
    if (pool.length === 0) return null;
    const siblings = this.#siblingsOf(newcomer);
    const loads = pool.map((entry) => loadOf(entry, siblings.get(entry.backend.id) ?? 0));
    const { jobId: key, group, ordinal, expectedTokens } = newcomer;
    const cursor = this.#placements++;
    const placement = place(this.#policy, loads, { key, group, ordinal, expectedTokens }, cursor);
    const excluded = entries.flatMap((entry) => {
      const why = closed(entry);
      return why === null ? [] : [{ id: entry.backend.id, why }];
    });
    const decision: Decision = {
      ...placement,
      ...{ atMs: this.#clock.nowMs(), jobId: newcomer.jobId, from, cause, excluded },
    };
    this.decisions.add(decision);
    return placement.backendId;
  }

  /** How many of its group live on each backend. */
  #siblingsOf({ jobId, group }: Pick<Trajectory, "jobId" | "group">): Map<string, number> {
    const counts = new Map<string, number>();
    if (group === null) return counts;
    for (const other of this.#trajectories.values()) {
      if (other.group !== group || other.jobId === jobId) continue;
      counts.set(other.backendId, (counts.get(other.backendId) ?? 0) + 1);
    }
    return counts;
  }

  #enter(trajectory: Trajectory): Registered {
    const entry = this.#entries.get(trajectory.backendId) as Registered;
    entry.assigned++;
    this.#count(trajectory, 1);
    return entry;
  }

  #leave(trajectory: Trajectory): void {
    this.#count(trajectory, -1);
    const entry = this.#entries.get(trajectory.backendId);
    if (entry) this.#forgetIfUnused(entry);
  }

  #count({ backendId, contextTokens, expectedTokens }: Trajectory, sign: 1 | -1): void {
    const entry = this.#entries.get(backendId);
    if (!entry) return;
    entry.live += sign;
    entry.contextTokens += sign * contextTokens;
    this.#contextTokens += sign * contextTokens;
    entry.expectedTokens += sign * expectedTokens;
  }

  #forgetIfUnused({ removed, live, backend }: Registered): void {
    if (removed && live === 0) this.#entries.delete(backend.id);
  }
}

const NOTHING = { live: 0, contextTokens: 0, expectedTokens: 0, turns: 0 };

function loadOf(entry: Registered, siblings: number): BackendLoad {
  const { backend, live, contextTokens, expectedTokens, kvUse, sameNode, assigned } = entry;
  const inEngine = entry.engine === null ? 0 : entry.engine.running + entry.engine.waiting;
  return {
    ...{ id: backend.id, live, contextTokens, expectedTokens, kvUse, sameNode, assigned },
    foreign: Math.max(0, inEngine - entry.turns),
    siblings,
  };
}

/** Why it takes no new trajectory; null where it does. */
function closedBecause({ removed, leaving, health, live }: Registered): string | null {
  if (removed) return "it was removed";
  if (leaving !== null) return "it is drained";
  if (health.state === "ejected") return `it is not healthy: ${health.why}`;
  return live < allowance(health) ? null : "it is tried with a few trajectories first";
}

function isLocal(url: string): boolean {
  const host = new URL(url).hostname.replace(/^\[|\]$/g, "");
  return host === "localhost" || host === "::1" || host.startsWith("127.");
}
