import { fitsWhole, held } from "./balance/room.ts";
import type { Trajectory } from "./live-trajectory.ts";

/** Whose tool runs for longer has its context thrown out, rather than that others wait for it. */
const LEFT_ALONE_MS = 30_000;
/** When for so long none has begun, no more are expected. */
const QUIET_MS = 30_000;

type HoldOptions = {
  clock: { nowMs(): number };
  /** Whether rollouts wait that have not begun. */
  moreToCome(): boolean;
};

/** The memory of a backend, all contexts that live on it, and whose they are, the eldest first. */
type Memory = {
  backendId: string;
  kvTokens: number | null;
  contextTokens: number;
  residents: Iterable<Trajectory>;
};

/** Whose contexts the backends' memories hold, put in order once for all that happens between two changes. */
export class MemoryHolds {
  readonly #options: HoldOptions;
  /** By backend. */
  readonly #inside = new Map<string, Set<Trajectory>>();
  #insideMs = 0;
  /** When a trajectory last began. */
  #begunMs = Number.NEGATIVE_INFINITY;

  constructor(options: HoldOptions) {
    this.#options = options;
  }

  /** A trajectory has begun. */
  begun(): void {
    this.#begunMs = this.#options.clock.nowMs();
  }

  /** What lives on a backend is something else now, or somebody there wants a call. */
  changed(backendId: string): void {
    this.#inside.delete(backendId);
  }

  isInside(trajectory: Trajectory, memory: Memory): boolean {
    const { kvTokens, contextTokens } = memory;
    if (kvTokens === null || fitsWhole(kvTokens, contextTokens)) return true;
    return this.#insideOf(memory, kvTokens).has(trajectory);
  }

  /** Who waits where a memory is too small, and why. */
  get order(): string {
    return this.#mayMoreCome()
      ? "it is to wait for elder ones, because more are to begin"
      : "it is to wait for those that have sampled less, because no more are to begin";
  }

  #insideOf({ backendId, residents }: Memory, kvTokens: number): Set<Trajectory> {
    const nowMs = this.#options.clock.nowMs();
    if (nowMs !== this.#insideMs) this.#inside.clear();
    this.#insideMs = nowMs;
    const known = this.#inside.get(backendId);
    if (known) return known;
    const living = [...residents].filter(({ inUse, usedMs }) => {
      return inUse || nowMs - usedMs <= LEFT_ALONE_MS;
    });
    for (const one of living) countWait(one, nowMs);
    const inside = held(kvTokens, living, this.#mayMoreCome());
    this.#inside.set(backendId, inside);
    return inside;
  }

  /** Whether others are to begin, as far as that can be told: while some wait, or some have just begun. */
  #mayMoreCome(): boolean {
    const { clock, moreToCome } = this.#options;
    return moreToCome() || clock.nowMs() - this.#begunMs < QUIET_MS;
  }
}

/** Brings what a trajectory's turns have waited up to now. */
export function countWait(trajectory: Trajectory, nowMs: number): void {
  if (trajectory.waitsSinceMs === null) return;
  trajectory.waitedMs += nowMs - trajectory.waitsSinceMs;
  trajectory.waitsSinceMs = nowMs;
}
