import type { ErrorBody } from "../errors.ts";
import { type Ending, isFinal, type Job, type Stage } from "../jobs/job.ts";
import { type JobEvent, transition } from "../jobs/transitions.ts";
import type { SandboxHandle } from "../sandbox/sandbox.ts";
import type { JobResult } from "../store/job-table.ts";
import { toJob } from "../store/rows.ts";
import type { Groups } from "./groups.ts";
import { withWaits } from "./held-back.ts";
import type { ImageGate } from "./image-gate.ts";
import type { Ladder } from "./ladder.ts";
import type { Parking } from "./parking.ts";
import type { ActiveJob, SchedulerParts } from "./parts.ts";
import type { Pauses } from "./pauses.ts";
import type { Pool } from "./pool.ts";
import type { Slots } from "./slots.ts";
import type { Suspects } from "./suspects.ts";
import type { Waiters } from "./waiters.ts";

type ChangeParts = SchedulerParts & {
  active: Map<string, ActiveJob>;
  pools: Record<Stage, Pool>;
  parking: Parking;
  images: ImageGate;
  slots: Slots;
  suspects: Suspects;
  ladder: Ladder;
  pauses: Pauses;
  groups: Groups;
  waiters: Waiters;
  /** No more work is begun. */
  closed(): boolean;
  /** Of a job's change, once it is durable. */
  tell(job: Job): void;
  afterCommit(effect: () => void): void;
};

/**
 * Every change of a job but the start of a stage, which is `slots.ts`: `transition` decides, one UPDATE books it, and
 * what hangs on the job (slot, sandbox, backend, group, who waits for it) follows. Inside a tick only.
 */
export class JobChanges {
  readonly #parts: ChangeParts;

  constructor(parts: ChangeParts) {
    this.#parts = parts;
  }

  /** Marks a job: a waiting job is final at once, an active one is told. */
  requestEnd(id: string, ending: Ending, reason?: string): void {
    const request = { type: "end_requested", ending, ...(reason ? { reason } : {}) } as const;
    const { store, clock, active, ladder, afterCommit } = this.#parts;
    const nowMs = clock.nowMs();
    const entry = active.get(id);
    if (entry) {
      const next = transition(withWaits(entry, this.#parts), request, nowMs);
      if (next.ending === entry.job.ending) return;
      store.updateJob(entry.seq, entry.job, next);
      entry.job = next;
      afterCommit(() => ladder.ask(entry, nowMs));
      return;
    }
    const row = store.jobById(id);
    if (!row) return;
    const job = toJob(row);
    const next = transition(job, request, nowMs);
    if (next !== job) this.#settle(row.seq, job, next);
  }

  /**
   * Takes a job out of its slot and books what became of it.
   *
   * @param behind how many more ends of its stage are to be booked at once: their jobs want a slot too
   */
  leave(
    entry: ActiveJob,
    event: JobEvent,
    result: JobResult,
    handle: SandboxHandle | null,
    behind: number,
  ): void {
    const { clock, active, images, backends, slots, closed } = this.#parts;
    const next = transition(withWaits(entry, this.#parts), event, clock.nowMs());
    active.delete(next.id);
    entry.worker.jobIds.delete(next.id);
    entry.worker.recording.delete(next.id);
    if (entry.fetching) images.left(entry.image);
    if (entry.backendId) backends.release(next.id, event.type === "stage_succeeded");
    // A verdict that lost the race against a cancel is not a reward.
    if (next.state !== "succeeded") delete result.verdict;
    if (!closed() && slots.goOn(entry, next, result, handle, 1 + behind)) return;
    this.#settle(entry.seq, entry.job, next, result, handle);
  }

  /** Books it, and lets its sandbox wait for the next stage or end. */
  #settle(
    seq: number,
    from: Job,
    next: Job,
    result?: JobResult,
    handle?: SandboxHandle | null,
  ): void {
    const { store, suspects, parking, pauses, groups, waiters, tell, afterCommit } = this.#parts;
    store.updateJob(seq, from, next, result);
    suspects.note(next);
    const sandbox = parking.take(next.id) ?? handle;
    const goesOn = next.state === "pending" && next.stage !== "init" && !this.#isSpare(next);
    if (sandbox && goesOn) parking.park(next.id, sandbox, next.stage);
    if (sandbox && !goesOn) parking.end(sandbox);
    tell(next);
    pauses.over(next, seq, isFinal(next));
    if (!isFinal(next)) return;
    groups.jobEnded(seq);
    afterCommit(() => waiters.notify(next.id));
  }

  /** Between two stages. One that EVAL would start for itself anyway is no loss. */
  sandboxLost(jobId: string, error: ErrorBody): void {
    const { store, clock, parking } = this.#parts;
    const handle = parking.take(jobId);
    const row = store.jobById(jobId);
    // Without one it has gone on with the job, whose thread finds out as well.
    if (!handle || !row) return;
    parking.end(handle);
    const job = toJob(row);
    if (job.stage === "eval" && job.evalFromRecord) return;
    const next = transition(job, { type: "sandbox_lost", error }, clock.nowMs());
    this.#settle(row.seq, job, next);
  }

  /** EVAL's fresh sandbox, where as many wait already as may: EVAL then starts it itself. */
  #isSpare({ stage, evalFromRecord }: Job): boolean {
    const { pools, settings, parking } = this.#parts;
    const allowed = Math.max(0, pools.eval.freeSlots()) + settings.maxSandboxesAhead;
    return stage === "eval" && evalFromRecord && parking.waitingFor("eval") >= allowed;
  }
}
