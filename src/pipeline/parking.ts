import { type ErrorBody, toErrorBody } from "../errors.ts";
import type { Stage } from "../jobs/job.ts";
import type { SandboxHandle } from "../sandbox/sandbox.ts";
import type { SandboxKeeper } from "./parts.ts";

type Parked = { handle: SandboxHandle; stage: Stage; watch: Disposable };

/** The sandboxes of jobs that wait between two stages, and the ends that are under way. */
export class Parking {
  readonly #keeper: SandboxKeeper;
  readonly #onLost: (jobId: string, error: ErrorBody) => void;
  readonly #parked = new Map<string, Parked>();
  readonly #ends = new Set<Promise<void>>();

  /** @param onLost told when a parked sandbox has died, or was killed for going beyond a limit. */
  constructor(keeper: SandboxKeeper, onLost: (jobId: string, error: ErrorBody) => void) {
    this.#keeper = keeper;
    this.#onLost = onLost;
  }

  /** @param stage what the job waits for */
  park(jobId: string, handle: SandboxHandle, stage: Stage): void {
    const watch = this.#keeper.watch(handle);
    this.#parked.set(jobId, { handle, stage, watch });
    watch.crossed.addEventListener("abort", () => {
      if (this.#parked.get(jobId)?.watch !== watch) return;
      this.#onLost(jobId, toErrorBody(watch.crossed.reason));
    });
  }

  take(jobId: string): SandboxHandle | null {
    const parked = this.#parked.get(jobId);
    this.#parked.delete(jobId);
    parked?.watch[Symbol.dispose]();
    return parked?.handle ?? null;
  }

  has(jobId: string): boolean {
    return this.#parked.has(jobId);
  }

  waitingFor(stage: Stage): number {
    let count = 0;
    for (const parked of this.#parked.values()) if (parked.stage === stage) count++;
    return count;
  }

  /** Ends a sandbox that no job needs any more. */
  end(handle: SandboxHandle): void {
    const end = this.#keeper.end(handle);
    this.#ends.add(end);
    end.finally(() => this.#ends.delete(end));
  }

  async endAll(): Promise<void> {
    for (const jobId of [...this.#parked.keys()]) {
      const handle = this.take(jobId);
      if (handle) this.end(handle);
    }
    await Promise.all(this.#ends);
  }
}
