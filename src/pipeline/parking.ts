import type { Stage } from "../jobs/job.ts";
import type { SandboxHandle } from "../sandbox/sandbox.ts";
import type { SandboxKeeper } from "./parts.ts";

/** The sandboxes of jobs that wait between two stages, and the ends that are under way. */
export class Parking {
  readonly #keeper: SandboxKeeper;
  readonly #parked = new Map<string, { handle: SandboxHandle; stage: Stage }>();
  readonly #ends = new Set<Promise<void>>();

  constructor(keeper: SandboxKeeper) {
    this.#keeper = keeper;
  }

  /** @param stage what the job waits for */
  park(jobId: string, handle: SandboxHandle, stage: Stage): void {
    this.#parked.set(jobId, { handle, stage });
  }

  take(jobId: string): SandboxHandle | null {
    const handle = this.#parked.get(jobId)?.handle ?? null;
    this.#parked.delete(jobId);
    return handle;
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
    for (const { handle } of this.#parked.values()) this.end(handle);
    this.#parked.clear();
    await Promise.all(this.#ends);
  }
}
