import type { PolicyName } from "../../src/inference/balance/placement.ts";
import { BackendRegistry } from "../../src/inference/registry.ts";
import { type Rollout, sampledTokens } from "./rollouts.ts";
import { type EngineModel, VirtualEngine } from "./virtual-engine.ts";

export type ClusterOptions = {
  policy: PolicyName;
  backends: number;
  engine: EngineModel;
  /** Rollouts at once, over all backends. */
  slots: number;
  rollouts: Rollout[];
  /** When the last backend joins; 0 is from the start. */
  joinMs?: number;
  seed: number;
};

export type Played = {
  makespanMs: number;
  /** Of the tokens of all prompts. */
  hitShare: number;
  /** What the hit share is where each rollout meets its own prefix always. */
  perfectShare: number;
  /** By backend: when it had nothing more to do, and how many rollouts it had. */
  endedMs: number[];
  placed: number[];
};

/** Plays all rollouts in virtual time through the registry that the service has. */
export function play(options: ClusterOptions): Played {
  const { policy, backends, engine, slots, rollouts, joinMs = 0 } = options;
  const queue = new EventQueue();
  const registry = new BackendRegistry({ policy, clock: { nowMs: () => queue.nowMs } });
  const engines = Array.from(
    { length: backends },
    () =>
      new VirtualEngine(
        engine,
        () => queue.nowMs,
        (ms, what) => queue.at(ms, what),
      ),
  );
  const ids = engines.map((_, index) => `b${String(index).padStart(2, "0")}`);
  const indexOf = new Map(ids.map((id, index) => [id, index]));
  const endedMs = engines.map(() => 0);
  const placed = engines.map(() => 0);
  const join = (id: string) => {
    registry.add({ id, url: `http://${id}/v1`, model: "m" });
    const entry = registry.get(id);
    // Only the service's own policy looks at the memory.
    if (entry && policy === "least-work") entry.kvTokens = engine.kvTokens;
  };
  for (const id of ids.slice(0, joinMs > 0 ? -1 : undefined)) join(id);
  // A static split gives each backend its part beforehand, and its part of the slots.
  const split = policy === "static";
  const waiting = ids.map((_, part) =>
    rollouts.filter(({ index }) => !split || partOf(index, rollouts.length, backends) === part),
  );
  if (!split) for (const part of waiting.slice(1)) part.length = 0;
  const live = ids.map(() => 0);
  const fill = () => {
    for (const [part, queued] of waiting.entries()) {
      const limit = split ? slots / backends : slots;
      while (queued.length > 0 && (live[part] ?? 0) < limit) {
        if (!split && !registry.available()) return;
        live[part] = (live[part] ?? 0) + 1;
        start(queued.shift() as Rollout, part);
      }
    }
  };
  const start = (rollout: Rollout, part: number) => {
    const jobId = `r${rollout.index}`;
    const preferredId = split ? (ids[part] ?? null) : null;
    const { group, index: ordinal } = rollout;
    const { id } = registry.acquire({ jobId, ordinal, group, preferredId });
    const at = indexOf.get(id) as number;
    placed[at] = (placed[at] ?? 0) + 1;
    const chosen = engines[at] as VirtualEngine;
    let context = rollout.promptTokens;
    const next = (turn: number) => {
      const asked = rollout.turns[turn];
      const trajectory = registry.trajectory(jobId);
      const entry = registry.get(id);
      if (!asked || !trajectory || !entry) {
        registry.release(jobId, true);
        chosen.forget(rollout.index);
        endedMs[at] = queue.nowMs;
        live[part] = (live[part] ?? 0) - 1;
        fill();
        return;
      }
      entry.turns++;
      chosen.call(rollout.index, context, asked.outputTokens, () => {
        context += asked.outputTokens;
        entry.turns--;
        entry.kvUse = chosen.kvUse;
        registry.advance(trajectory, context, asked.outputTokens);
        context += asked.observationTokens;
        queue.at(queue.nowMs + asked.toolMs, () => next(turn + 1));
      });
    };
    next(0);
  };
  if (joinMs > 0) {
    queue.at(joinMs, () => {
      join(ids.at(-1) as string);
      fill();
    });
  }
  fill();
  const makespanMs = queue.run();
  const sum = (count: (engine: VirtualEngine) => number) =>
    engines.reduce((total, one) => total + count(one), 0);
  const promptTokens = sum((one) => one.promptTokens);
  return {
    makespanMs,
    hitShare: sum((one) => one.cachedTokens) / promptTokens,
    perfectShare: perfectlyCached(rollouts) / promptTokens,
    endedMs,
    placed,
  };
}

function partOf(index: number, count: number, parts: number): number {
  return Math.min(parts - 1, Math.floor((index * parts) / count));
}

function perfectlyCached(rollouts: Rollout[]): number {
  let cached = 0;
  for (const { turns, promptTokens } of rollouts) {
    let context = promptTokens;
    for (const [index, { outputTokens, observationTokens }] of turns.entries()) {
      if (index > 0) cached += context - (turns[index - 1]?.observationTokens ?? 0);
      context += outputTokens + observationTokens;
    }
  }
  return cached;
}

/**
 * What no placement can be faster than: the longest rollout alone on an engine, or all tokens shared evenly
 * among the engines at the speed that they have with all their slots taken. Units: milliseconds.
 */
export function lowerBoundMs({ rollouts, engine, backends, slots }: ClusterOptions): number {
  const prefillMs = (tokens: number) => (tokens / engine.prefillTokensPerS) * 1000;
  let longest = 0;
  let total = 0;
  const batch = Math.min(engine.maxBatch, slots / backends);
  const bestStepMs = (engine.stepMs + engine.stepMsPerRequest * (batch - 1)) / batch;
  for (const rollout of rollouts) {
    const observed = rollout.turns.slice(0, -1);
    const read = observed.reduce((sum, turn) => sum + turn.observationTokens, rollout.promptTokens);
    const toolMs = observed.reduce((sum, turn) => sum + turn.toolMs, 0);
    const sampled = sampledTokens(rollout);
    longest = Math.max(longest, sampled * engine.stepMs + prefillMs(read) + toolMs);
    total += Math.max(sampled * bestStepMs, prefillMs(read));
  }
  return Math.max(longest, total / backends);
}

/** What happens when, in virtual time. */
class EventQueue {
  nowMs = 0;
  readonly #heap: { ms: number; order: number; what: () => void }[] = [];
  #order = 0;

  at(ms: number, what: () => void): void {
    const heap = this.#heap;
    let index = heap.push({ ms, order: this.#order++, what }) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#before(index, parent)) break;
      this.#swap(index, parent);
      index = parent;
    }
  }

  run(): number {
    for (let next = this.#pop(); next; next = this.#pop()) {
      this.nowMs = Math.max(this.nowMs, next.ms);
      next.what();
    }
    return this.nowMs;
  }

  #pop() {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    heap[0] = last;
    for (let index = 0; ; ) {
      const left = 2 * index + 1;
      let least = index;
      if (left < heap.length && this.#before(left, least)) least = left;
      if (left + 1 < heap.length && this.#before(left + 1, least)) least = left + 1;
      if (least === index) return first;
      this.#swap(index, least);
      index = least;
    }
  }

  #before(a: number, b: number): boolean {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    if (!one || !other) return false;
    return one.ms < other.ms || (one.ms === other.ms && one.order < other.order);
  }

  #swap(a: number, b: number): void {
    const one = this.#heap[a];
    const other = this.#heap[b];
    if (one && other) [this.#heap[a], this.#heap[b]] = [other, one];
  }
}
