import type { Backend } from "./engine.ts";

type Registered = { backend: Backend; inFlight: number; removed: boolean };

/**
 * The inference servers and how many trajectories live on each. A trajectory stays on the backend that it
 * got; a new one goes where the fewest are.
 */
export class BackendRegistry {
  readonly #entries = new Map<string, Registered>();
  /** Where the search begins, so that ties rotate and a burst is not sent to one backend. */
  #cursor = 0;

  list(): { backend: Backend; inFlight: number }[] {
    return [...this.#entries.values()].filter(({ removed }) => !removed);
  }

  available(): boolean {
    return this.list().length > 0;
  }

  add(backend: Backend): void {
    const known = this.#entries.get(backend.id);
    this.#entries.set(backend.id, { backend, inFlight: known?.inFlight ?? 0, removed: false });
  }

  /** Trajectories that live on it go on; no new one comes. */
  remove(id: string): boolean {
    const entry = this.#entries.get(id);
    if (!entry || entry.removed) return false;
    entry.removed = true;
    this.#forgetIfUnused(entry);
    return true;
  }

  acquire(preferredId: string | null): Backend {
    const candidates = this.list() as Registered[];
    const preferred = candidates.find(({ backend }) => backend.id === preferredId);
    const chosen = preferred ?? this.#leastLoaded(candidates);
    if (!chosen) throw new Error("no backend to acquire; `available` tells before");
    chosen.inFlight++;
    return chosen.backend;
  }

  release(id: string): void {
    const entry = this.#entries.get(id);
    if (!entry) return;
    entry.inFlight--;
    this.#forgetIfUnused(entry);
  }

  #leastLoaded(candidates: Registered[]): Registered | undefined {
    const from = this.#cursor++ % Math.max(1, candidates.length);
    const rotated = [...candidates.slice(from), ...candidates.slice(0, from)];
    let best = rotated[0];
    for (const entry of rotated) if (best && entry.inFlight < best.inFlight) best = entry;
    return best;
  }

  #forgetIfUnused({ removed, inFlight, backend }: Registered): void {
    if (removed && inFlight === 0) this.#entries.delete(backend.id);
  }
}
