import { type Decision, DecisionLog } from "./balance/decision-log.ts";
import { ContextGrowth } from "./balance/growth.ts";
import { type LengthEstimate, Lengths } from "./balance/lengths.ts";
import { type PolicyName, place } from "./balance/placement.ts";
import { isWorthMoving } from "./balance/relief.ts";
import { type Growing, hasRoom } from "./balance/room.ts";
import type { Backend } from "./engine.ts";
import { type Arrival, newcomer, type Trajectory } from "./live-trajectory.ts";
import { countWait, MemoryHolds } from "./memory-holds.ts";
import { closedBecause, type Leaving, loadOf, type Registered, registered } from "./registered.ts";

/** Of an agent that edits code: some 17 turns of 300. Units: tokens. */
const FIRST_GUESS = 5_000;

type RegistryOptions = {
  policy?: PolicyName;
  /** Whether trajectories may go to a backend that has much less to read, between two turns. */
  moves?: boolean;
  /** By default learnt from those that have ended. */
  lengths?: LengthEstimate;
  /** Whether rollouts wait that have not begun; unless that is known there may always be some. */
  moreToCome?: () => boolean;
  clock?: { nowMs(): number };
};

type Context = Pick<Trajectory, "contextTokens" | "firstContext" | "expectedTokens" | "group">;

/**
 * The inference servers, and which trajectory lives on which. A trajectory stays on the backend that it got,
 * unless that one can't be used any more.
 */
export class BackendRegistry {
  readonly decisions = new DecisionLog();
  /** How many tokens trajectories sample. */
  readonly #lengths: LengthEstimate;
  readonly #growth = new ContextGrowth();
  readonly #entries = new Map<string, Registered>();
  readonly #trajectories = new Map<string, Trajectory>();
  /** By backend. */
  readonly #residents = new Map<string, Set<Trajectory>>();
  readonly #policy: PolicyName;
  readonly #moves: boolean;
  readonly #holds: MemoryHolds;
  readonly #clock: { nowMs(): number };
  #placements = 0;

  constructor(options: RegistryOptions = {}) {
    const { policy = "least-work", moves = false, clock = { nowMs: Date.now } } = options;
    this.#policy = policy;
    this.#moves = moves;
    this.#lengths = options.lengths ?? new Lengths(FIRST_GUESS, () => this.#sampledByLiving());
    this.#clock = clock;
    this.#holds = new MemoryHolds({ clock, moreToCome: options.moreToCome ?? (() => true) });
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
    this.#entries.set(backend.id, registered(backend, this.#clock.nowMs(), known));
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
    const expectedTokens = this.#lengths.expectedAfter(0, given.jobId);
    const trajectory = newcomer(given, expectedTokens, this.#clock.nowMs());
    const preferred = preferredId === null ? undefined : this.#entries.get(preferredId);
    const stays = preferred && this.#closedBecause(preferred) === null;
    const backendId = stays ? preferred.backend.id : this.#choose(trajectory, null, null, []);
    if (backendId === null) throw new Error("no backend to acquire; `available` tells before");
    const placed = { ...trajectory, backendId };
    this.#trajectories.set(given.jobId, placed);
    this.#holds.begun();
    return this.#enter(placed).backend;
  }

  trajectory(jobId: string): Trajectory | undefined {
    return this.#trajectories.get(jobId);
  }

  /** Another backend for a trajectory that can't stay; null where there is none. */
  move(trajectory: Trajectory, cause: string, avoid: readonly string[]): Backend | null {
    const chosen = this.#choose(trajectory, trajectory.backendId, cause, avoid);
    return chosen === null ? null : this.#settle(trajectory, chosen).backend;
  }

  /**
   * Between two turns: moves a trajectory to a backend that reads much less in each step, where that is allowed and
   * saves more time than it costs. Null where it stays.
   */
  relieve(trajectory: Trajectory): Registered | null {
    const from = this.#entries.get(trajectory.backendId);
    if (!this.#moves || !from) return null;
    let to = from;
    for (const entry of this.#entries.values()) {
      const { kvTokens, contextTokens } = entry;
      if (contextTokens >= to.contextTokens) continue;
      const fits = kvTokens === null || contextTokens + trajectory.contextTokens <= kvTokens;
      if (fits && closedBecause(entry) === null) to = entry;
    }
    if (to === from || !isWorthMoving(trajectory, from, to)) return null;
    const sides = [from, to].map(({ backend, contextTokens }) => {
      return { id: backend.id, score: contextTokens };
    });
    this.#decide({
      ...{ jobId: trajectory.jobId, policy: this.#policy, scores: sides, excluded: [] },
      ...{ backendId: to.backend.id, from: from.backend.id },
      cause: `${from.backend.id} has more to read in each step than a move costs`,
      reason: "it has the least context to read",
    });
    return this.#settle(trajectory, to.backend.id);
  }

  /** Whether its backend's memory holds its context; otherwise its next turn waits until there is room. */
  isHeld(trajectory: Trajectory): boolean {
    const { backendId } = trajectory;
    const { kvTokens = null, contextTokens = 0 } = this.#entries.get(backendId) ?? {};
    const residents = this.#residents.get(backendId) ?? [];
    const memory = { backendId, kvTokens, contextTokens, residents };
    const isInside = this.#holds.isInside(trajectory, memory);
    if (!isInside && !trajectory.isOut) this.#putOut(trajectory);
    return isInside;
  }

  /** It wants a call, which it may have to wait for. */
  wants(trajectory: Trajectory): void {
    this.#holds.changed(trajectory.backendId);
    trajectory.inUse = true;
    trajectory.usedMs = this.#clock.nowMs();
    trajectory.waitsSinceMs ??= trajectory.usedMs;
  }

  /** It has one. */
  goes(trajectory: Trajectory): void {
    this.waitedMs(trajectory);
    trajectory.waitsSinceMs = null;
    trajectory.isOut = false;
  }

  /** It has none any more, and wants none. */
  rests(trajectory: Trajectory): void {
    this.goes(trajectory);
    trajectory.inUse = false;
    trajectory.usedMs = this.#clock.nowMs();
  }

  /** How long its turns have waited for leave, up to now. */
  waitedMs(trajectory: Trajectory): number {
    countWait(trajectory, this.#clock.nowMs());
    return trajectory.waitedMs;
  }

  /** What a call made of a trajectory. */
  advance(trajectory: Trajectory, contextTokens: number | null, sampledTokens: number): void {
    this.#count(trajectory, -1);
    trajectory.contextTokens = contextTokens ?? trajectory.contextTokens + sampledTokens;
    // Where the engine makes the prompt it is known only with what was sampled.
    if (trajectory.firstContext === 0) {
      trajectory.firstContext = Math.max(0, trajectory.contextTokens - sampledTokens);
    }
    trajectory.sampledTokens += sampledTokens;
    const { sampledTokens: sampled, jobId } = trajectory;
    trajectory.expectedTokens = this.#lengths.expectedAfter(sampled, jobId);
    this.#count(trajectory, 1);
  }

  /** @param whole whether it came to an end of its own, so that its length is one to learn from */
  release(jobId: string, whole: boolean): Trajectory | undefined {
    const trajectory = this.#trajectories.get(jobId);
    if (!trajectory) return undefined;
    this.#trajectories.delete(jobId);
    this.#leave(trajectory);
    if (whole) {
      this.#lengths.add(trajectory.sampledTokens);
      this.#growth.add(trajectory);
    }
    return trajectory;
  }

  /** Why a backend takes no new trajectory; null where it does. */
  #closedBecause(entry: Registered, group: string | null = null): string | null {
    const closed = closedBecause(entry);
    if (closed !== null) return closed;
    const expectedTokens = this.#lengths.expectedAfter(0, null);
    const newcomer = { contextTokens: 0, firstContext: 0, expectedTokens, group };
    return this.#hasRoom(entry, newcomer) ? null : "its memory is full of contexts";
  }

  #hasRoom({ kvTokens, backend }: Registered, newcomer: Context): boolean {
    if (kvTokens === null) return true;
    const living = Array.from(this.#residents.get(backend.id) ?? [], (one) => this.#growing(one));
    return hasRoom(kvTokens, living, this.#growing(newcomer));
  }

  #growing(given: Context): Growing {
    const { perToken, firstContext: usual } = this.#growth;
    const { contextTokens, firstContext, expectedTokens, group } = given;
    const growthTokens = perToken * expectedTokens;
    const context = { contextTokens: contextTokens || usual, firstContext: firstContext || usual };
    return { ...context, group, growthTokens };
  }

  #putOut(trajectory: Trajectory): void {
    trajectory.isOut = true;
    const { jobId, backendId } = trajectory;
    const reason = this.#holds.order;
    const cause = `contexts have outgrown the memory of ${backendId}`;
    const nothing = { scores: [], excluded: [] };
    const same = { backendId, from: backendId };
    this.#decide({ jobId, ...same, policy: this.#policy, cause, reason, ...nothing });
  }

  *#sampledByLiving(): Generator<number> {
    for (const { sampledTokens } of this.#trajectories.values()) yield sampledTokens;
  }

  #choose(
    newcomer: Omit<Trajectory, "backendId">,
    from: string | null,
    cause: string | null,
    avoid: readonly string[],
  ): string | null {
    const closed = (entry: Registered) =>
      avoid.includes(entry.backend.id)
        ? "the call failed there"
        : this.#closedBecause(entry, newcomer.group);
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
    this.#decide({ ...placement, jobId: newcomer.jobId, from, cause, excluded });
    return placement.backendId;
  }

  #decide(decision: Omit<Decision, "atMs">): void {
    this.decisions.add({ ...decision, atMs: this.#clock.nowMs() });
  }

  #settle(trajectory: Trajectory, backendId: string): Registered {
    this.#leave(trajectory);
    trajectory.backendId = backendId;
    trajectory.turnsHere = 0;
    trajectory.isOut = false;
    return this.#enter(trajectory);
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
    const residents = this.#residents.get(trajectory.backendId) ?? new Set();
    this.#residents.set(trajectory.backendId, residents.add(trajectory));
    this.#count(trajectory, 1);
    return entry;
  }

  #leave(trajectory: Trajectory): void {
    this.#count(trajectory, -1);
    this.#residents.get(trajectory.backendId)?.delete(trajectory);
    const entry = this.#entries.get(trajectory.backendId);
    if (entry) this.#forgetIfUnused(entry);
  }

  #count({ backendId, contextTokens, expectedTokens }: Trajectory, sign: 1 | -1): void {
    this.#holds.changed(backendId);
    const entry = this.#entries.get(backendId);
    if (!entry) return;
    entry.live += sign;
    entry.contextTokens += sign * contextTokens;
    entry.expectedTokens += sign * expectedTokens;
  }

  #forgetIfUnused({ removed, live, backend }: Registered): void {
    if (!removed || live > 0) return;
    this.#entries.delete(backend.id);
    this.#residents.delete(backend.id);
  }
}
