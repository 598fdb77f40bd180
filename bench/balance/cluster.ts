import { adjusted } from "../../src/inference/balance/admission.ts";
import type { LengthEstimate } from "../../src/inference/balance/lengths.ts";
import type { PolicyName } from "../../src/inference/balance/placement.ts";
import type { Trajectory } from "../../src/inference/live-trajectory.ts";
import type { Registered } from "../../src/inference/registered.ts";
import { BackendRegistry } from "../../src/inference/registry.ts";
import type { EngineModel } from "../../src/simulator/engine-model.ts";
import { EventQueue } from "./event-queue.ts";
import { type Rollout, sampledTokens } from "./rollouts.ts";
import { VirtualEngine } from "./virtual-engine.ts";

export type ClusterOptions = {
  policy: PolicyName;
  /** Whether rollouts may go to a backend with less to do, between two turns. */
  moves: boolean;
  backends: number;
  engine: EngineModel;
  /** Rollouts at once, over all backends. */
  slots: number;
  rollouts: Rollout[];
  /** Whether the length of each is known beforehand. */
  foresight?: boolean;
  /** Where each goes, by its index: the number of a backend. */
  places?: Map<number, number> | undefined;
  /** When the last backend joins; 0 is from the start. */
  joinMs?: number;
  /** By how much the engines are faster than the time that the service goes by. */
  speed?: number;
};

export type Played = {
  makespanMs: number;
  /** Of the tokens of all prompts. */
  hitShare: number;
  /** What the hit share is where each rollout meets its own prefix always, and its siblings' first prompt. */
  perfectShare: number;
  moves: number;
  preemptions: number;
};

/** Plays all rollouts in virtual time through the registry that the service has. */
export function play(options: ClusterOptions): Played {
  const cluster = new Cluster(options);
  const makespanMs = cluster.run();
  const { engines, moves } = cluster;
  const sum = (of: (engine: VirtualEngine) => number) =>
    engines.reduce((total, engine) => total + of(engine), 0);
  const promptTokens = sum((engine) => engine.promptTokens);
  return {
    makespanMs,
    hitShare: sum((engine) => engine.cachedTokens) / promptTokens,
    perfectShare: perfectlyCached(options.rollouts) / promptTokens,
    moves,
    preemptions: sum((engine) => engine.preemptions),
  };
}

/** As the service's defaults are. */
const LOOK_MS = 5_000;
const TURNS_AT_ONCE = { floor: 4, ceiling: 1_024 };

/** Rollouts that wait for a slot together. */
type Part = { waiting: Rollout[]; freeSlots: number; backendId: string | null };

/** The `at`th turn of a rollout, which is to begin with so much context. */
type Turn = { jobId: string; rollout: Rollout; part: Part; at: number; context: number };

class Cluster {
  readonly engines: VirtualEngine[];
  moves = 0;
  readonly #options: ClusterOptions;
  readonly #queue = new EventQueue();
  readonly #registry: BackendRegistry;
  readonly #ids: string[];
  readonly #parts: Part[];
  /** Turns that wait until their contexts fit into memory. */
  readonly #waiting = new Set<Turn>();
  /** When the last rollout was done. */
  #endMs = 0;
  readonly #seenPreemptions = new Map<VirtualEngine, number>();

  constructor(options: ClusterOptions) {
    const { policy, moves, backends, engine, joinMs = 0, speed = 1 } = options;
    this.#options = options;
    const queue = this.#queue;
    const lengths = options.foresight ? { lengths: new Foresight(options.rollouts) } : {};
    const moreToCome = () => this.#parts.some(({ waiting }) => waiting.length > 0);
    const clock = { nowMs: () => queue.nowMs() / speed };
    const given = { policy, moves, moreToCome, clock };
    this.#registry = new BackendRegistry({ ...given, ...lengths });
    this.engines = Array.from({ length: backends }, () => new VirtualEngine(engine, queue));
    this.#ids = this.engines.map((_, index) => `b${String(index).padStart(2, "0")}`);
    this.#parts = this.#split();
    for (const id of this.#ids.slice(0, joinMs > 0 ? -1 : undefined)) this.#join(id);
  }

  /** Returns when the last rollout was done. */
  run(): number {
    const { joinMs = 0 } = this.#options;
    if (joinMs > 0) {
      this.#queue.at(joinMs, () => {
        this.#join(this.#ids.at(-1) as string);
        this.#fill();
      });
    }
    this.#fill();
    this.#look();
    this.#queue.run();
    return this.#endMs;
  }

  /**
   * As trainers split a batch that repeats each instance for its samples: each backend gets its chunk beforehand, siblings
   * together, and its part of the slots. Otherwise all wait together.
   */
  #split(): Part[] {
    const { policy, slots, rollouts, backends } = this.#options;
    if (policy !== "static") return [{ waiting: [...rollouts], freeSlots: slots, backendId: null }];
    const size = Math.ceil(rollouts.length / backends);
    return this.#ids.map((backendId, part) => {
      const waiting = rollouts.slice(part * size, (part + 1) * size);
      return { waiting, freeSlots: slots / backends, backendId };
    });
  }

  #join(id: string): void {
    this.#registry.add({ id, url: `http://${id}/v1`, model: "m" });
    const entry = this.#registry.get(id);
    const { policy, engine } = this.#options;
    // Only the service's own policy looks at the memory.
    if (entry && policy === "least-work") entry.kvTokens = engine.kvTokens;
  }

  /** As the service looks at its engines' metrics. */
  #look(): void {
    if (this.#registry.list().every(({ live }) => live === 0)) return;
    for (const entry of this.#registry.list()) {
      const engine = this.#engineOf(entry.backend.id);
      const { kvUse, waiting, preemptions } = engine;
      const since = preemptions - (this.#seenPreemptions.get(engine) ?? 0);
      this.#seenPreemptions.set(engine, preemptions);
      entry.kvUse = kvUse;
      const sample = { kvUse, waiting, turns: entry.turns, preemptions: since };
      if (this.#options.policy !== "least-work") continue;
      entry.admission = adjusted(entry.admission, sample, TURNS_AT_ONCE);
    }
    this.#goOn();
    this.#queue.at(this.#queue.nowMs() + LOOK_MS, () => this.#look());
  }

  #fill(): void {
    for (const part of this.#parts) {
      while (part.waiting.length > 0 && part.freeSlots > 0) {
        if (part.backendId === null && !this.#registry.available()) return;
        part.freeSlots--;
        this.#start(part.waiting.shift() as Rollout, part);
      }
    }
  }

  #start(rollout: Rollout, part: Part): void {
    const { group, index } = rollout;
    const jobId = `r${index}`;
    const place = this.#options.places?.get(index);
    const preferredId = place === undefined ? part.backendId : (this.#ids[place] ?? null);
    this.#registry.acquire({ jobId, ordinal: index, group, preferredId });
    this.#want({ jobId, rollout, part, at: 0, context: rollout.promptTokens });
  }

  #want(turn: Turn): void {
    const { jobId, rollout, part, context } = turn;
    const trajectory = this.#registry.trajectory(jobId);
    if (!trajectory) return;
    if (turn.at < rollout.turns.length) {
      this.#registry.wants(trajectory);
      this.#registry.advance(trajectory, context, 0);
      this.#waiting.add(turn);
      this.#goOn();
      return;
    }
    this.#registry.release(jobId, true);
    part.freeSlots++;
    this.#endMs = this.#queue.nowMs();
    this.#goOn();
    this.#fill();
  }

  /** As the service's desk does it: each that waits may move, and calls its backend where that has room for it. */
  #goOn(): void {
    const before = this.moves;
    for (const turn of [...this.#waiting]) {
      const trajectory = this.#registry.trajectory(turn.jobId);
      if (!trajectory) continue;
      if (this.#registry.relieve(trajectory) !== null) this.moves++;
      if (!this.#registry.isHeld(trajectory)) continue;
      const entry = this.#registry.get(trajectory.backendId) as Registered;
      if (entry.turns >= entry.admission.limit) {
        entry.admission.reached = true;
        continue;
      }
      this.#waiting.delete(turn);
      this.#call(turn, trajectory);
    }
    // Who has gone has left room behind.
    const again = this.moves > before && this.#waiting.size > 0;
    if (again) this.#queue.at(this.#queue.nowMs(), () => this.#goOn());
  }

  #call(turn: Turn, trajectory: Trajectory): void {
    const { rollout, at, context } = turn;
    const { index: owner, group, promptTokens: sharedTokens, turns } = rollout;
    const { outputTokens, observationTokens, toolMs } = turns[at] as Rollout["turns"][number];
    const { backendId } = trajectory;
    const engine = this.#engineOf(backendId);
    const registry = this.#registry;
    registry.goes(trajectory);
    trajectory.turnsHere++;
    (registry.get(backendId) as Registered).turns++;
    engine.call({ owner, group, tokens: context, sharedTokens }, outputTokens, () => {
      const sampled = context + outputTokens;
      const entry = registry.get(backendId);
      if (entry) entry.turns--;
      registry.rests(trajectory);
      registry.advance(trajectory, sampled, outputTokens);
      // The last turn calls no tool.
      const waitMs = at + 1 < turns.length ? toolMs : 0;
      const next = { ...turn, at: at + 1, context: sampled + observationTokens };
      this.#queue.at(this.#queue.nowMs() + waitMs, () => this.#want(next));
    });
  }

  #engineOf(id: string): VirtualEngine {
    return this.engines[this.#ids.indexOf(id)] as VirtualEngine;
  }
}

/** Knows what nobody can. */
class Foresight implements LengthEstimate {
  readonly #lengths: Map<string, number>;
  readonly #mean: number;

  constructor(rollouts: Rollout[]) {
    const known = rollouts.map((rollout) => [`r${rollout.index}`, sampledTokens(rollout)] as const);
    this.#lengths = new Map(known);
    this.#mean = known.reduce((sum, [, tokens]) => sum + tokens, 0) / known.length;
  }

  add(): void {}

  expectedAfter(sampled: number, jobId: string | null): number {
    const length = jobId === null ? this.#mean : (this.#lengths.get(jobId) ?? this.#mean);
    return Math.max(0, length - sampled);
  }
}

function perfectlyCached(rollouts: Rollout[]): number {
  let cached = 0;
  const groups = new Set<string>();
  for (const { group, turns, promptTokens } of rollouts) {
    let known = groups.has(group) ? promptTokens : 0;
    groups.add(group);
    let context = promptTokens;
    for (const { outputTokens, observationTokens } of turns) {
      cached += known;
      known = context + outputTokens;
      context = known + observationTokens;
    }
  }
  return cached;
}
