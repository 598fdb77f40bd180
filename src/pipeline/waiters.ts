/** Requests that wait for a job to finish, or for any job to finish. */
export class Waiters {
  readonly #byJob = new Map<string, Set<() => void>>();
  readonly #any = new Set<() => void>();

  /** Resolves true when the job finishes, false when the time is over or `signal` aborts. */
  job(id: string, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    const set = this.#byJob.get(id) ?? new Set();
    this.#byJob.set(id, set);
    return wait(set, timeoutMs, signal).finally(() => {
      if (set.size === 0 && this.#byJob.get(id) === set) this.#byJob.delete(id);
    });
  }

  /** Resolves true when the next job finishes, whichever it is. */
  any(timeoutMs: number, signal: AbortSignal): Promise<boolean> {
    return wait(this.#any, timeoutMs, signal);
  }

  notify(id: string): void {
    wake(this.#byJob.get(id));
    wake(this.#any);
  }

  /** Lets everyone go, so that a stopping server has no request left open. */
  notifyAll(): void {
    for (const set of this.#byJob.values()) wake(set);
    wake(this.#any);
  }
}

function wake(set: Set<() => void> | undefined): void {
  if (!set || set.size === 0) return;
  for (const resume of [...set]) resume();
}

function wait(set: Set<() => void>, timeoutMs: number, signal: AbortSignal): Promise<boolean> {
  return new Promise((resolve) => {
    const settle = (woken: boolean) => {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
      set.delete(onWake);
      resolve(woken);
    };
    const onWake = () => settle(true);
    const onAbort = () => settle(false);
    const timer = setTimeout(onAbort, timeoutMs);
    set.add(onWake);
    signal.addEventListener("abort", onAbort);
    if (signal.aborted) onAbort();
  });
}
