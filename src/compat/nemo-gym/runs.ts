/** How the ids of its rollouts begin. */
export const ID_PREFIX = "gym-";

/** A rollout whose reply was not delivered yet; `key` says whose it is, and with what body it was asked for. */
export type Run = { readonly rolloutId: string; readonly key: string; timer: Timer | null };

/**
 * Which rollouts lost their client. NeMo Gym's client sends a body again, without a mark, when its connection
 * broke; so the same body takes an orphan over, and is a new sample where there is none.
 */
export class Runs {
  readonly #orphans = new Map<string, Run[]>();
  readonly #graceMs: number;
  readonly #cancel: (rolloutId: string) => void;

  constructor(graceMs: number, cancel: (rolloutId: string) => void) {
    this.#graceMs = graceMs;
    this.#cancel = cancel;
  }

  enter(key: string): { run: Run; adopted: boolean } {
    const orphan = this.#orphans.get(key)?.[0];
    if (orphan) {
      this.#forget(orphan);
      return { run: orphan, adopted: true };
    }
    const rolloutId = `${ID_PREFIX}${crypto.randomUUID()}`;
    return { run: { rolloutId, key, timer: null }, adopted: false };
  }

  /** Rollouts of a service that was killed: their clients send their bodies again as well. */
  orphanAll(left: Iterable<Pick<Run, "rolloutId" | "key">>): void {
    for (const run of left) this.orphan({ ...run, timer: null });
  }

  /** Its client is gone: it waits to be taken over, and is cancelled when nobody does. */
  orphan(run: Run): void {
    const orphans = this.#orphans.get(run.key) ?? [];
    this.#orphans.set(run.key, [...orphans, run]);
    run.timer = setTimeout(() => {
      this.#forget(run);
      this.#cancel(run.rolloutId);
    }, this.#graceMs);
    run.timer.unref();
  }

  #forget(run: Run): void {
    if (run.timer) clearTimeout(run.timer);
    run.timer = null;
    const left = this.#orphans.get(run.key)?.filter((other) => other !== run) ?? [];
    if (left.length > 0) this.#orphans.set(run.key, left);
    else this.#orphans.delete(run.key);
  }
}
