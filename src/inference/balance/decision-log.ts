import type { Placement } from "./placement.ts";

/** Why a trajectory is where it is. */
export type Decision = Placement & {
  atMs: number;
  jobId: string;
  /** Where it was before; null where it is new. */
  from: string | null;
  /** Why it could not stay, or null. */
  cause: string | null;
  /** Backends that could not be chosen, and why. */
  excluded: { id: string; why: string }[];
};

const KEPT = 512;

/** The last decisions. */
export class DecisionLog {
  readonly #kept: Decision[] = [];

  add(decision: Decision): void {
    if (this.#kept.push(decision) > KEPT) this.#kept.shift();
  }

  /** The newest first; of one backend, those that chose it or took from it. */
  last(limit: number, backendId?: string): Decision[] {
    const about = ({ backendId: to, from }: Decision) =>
      backendId === undefined || to === backendId || from === backendId;
    return this.#kept.filter(about).reverse().slice(0, limit);
  }
}
