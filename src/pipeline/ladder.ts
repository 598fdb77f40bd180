import { ERRORS, type ErrorBody, type ErrorCode } from "../errors.ts";
import type { Ending } from "../jobs/job.ts";
import { stageEndsMs } from "./held-back.ts";
import { type ActiveJob, everyInterval, type SchedulerParts } from "./parts.ts";
import type { PoolWorker } from "./pool.ts";

/** How often deadlines and unanswered ends are looked at. */
const SWEEP_MS = 25;

const REASONS: Record<Ending, { code: ErrorCode; message: string }> = {
  cancel: { code: "cancelled", message: "cancelled" },
  deadline: { code: "deadline_exceeded", message: "a deadline passed" },
  shutdown: { code: "shutting_down", message: "the service is stopping" },
};

type LadderParts = Pick<
  SchedulerParts,
  "every" | "store" | "clock" | "sandboxes" | "settings" | "backends"
> & {
  active: ReadonlyMap<string, ActiveJob>;
  endOverdue(jobIds: string[]): void;
  endUnleased(jobIds: string[]): void;
  /** Lets the jobs go on that waited to be tried again. */
  releaseDelayed(): void;
  /** The last rung: a fresh thread in the place of one that hangs. */
  replace(worker: PoolWorker): void;
};

/**
 * The one way in which anything is ended early: ask the worker, kill the sandbox when it does not confirm,
 * replace the thread when even that does not help.
 */
export class Ladder {
  readonly #parts: LadderParts;
  readonly #timer: Disposable;

  constructor(parts: LadderParts) {
    this.#parts = parts;
    this.#timer = (parts.every ?? everyInterval)(SWEEP_MS, () => this.#sweep());
  }

  stop(): void {
    this.#timer[Symbol.dispose]();
  }

  /** Tells the worker. The row stays active until it confirms. */
  ask(entry: ActiveJob, nowMs: number): void {
    const { job, worker } = entry;
    if (job.ending === null || this.#parts.active.get(job.id) !== entry) return;
    entry.endAskedMs ??= nowMs;
    const { code, message } = REASONS[job.ending];
    const { boundary, retryable } = ERRORS[code];
    const reason: ErrorBody = { code, message, boundary, retryable };
    // An end may take its time; a thread that is blocked gives no sign of life meanwhile.
    worker.heard = false;
    worker.outbox.push({ type: "ping" });
    worker.outbox.push({ type: "cancel", jobId: job.id, attempt: job.attempt, reason });
  }

  #sweep(): void {
    const nowMs = this.#parts.clock.nowMs();
    this.#endOverdue(nowMs);
    if ((this.#parts.store.queue.nextDueMs() ?? Number.POSITIVE_INFINITY) <= nowMs) {
      this.#parts.releaseDelayed();
    }
    const unleased = this.#parts.store.leases.over(nowMs);
    if (unleased.length > 0) this.#parts.endUnleased(unleased);
    const grace = this.#parts.settings.cancelGraceMs;
    const stuck = new Set<PoolWorker>();
    for (const entry of this.#parts.active.values()) {
      if (entry.endAskedMs === null) continue;
      const waitedMs = nowMs - entry.endAskedMs;
      if (waitedMs > 2 * grace) stuck.add(entry.worker);
      else if (waitedMs > grace && !entry.killed) {
        entry.killed = true;
        for (const handle of entry.handles) this.#parts.sandboxes.kill(handle);
      }
    }
    for (const worker of stuck) this.#parts.replace(worker);
  }

  #endOverdue(nowMs: number): void {
    const overdue: string[] = [];
    const { active, backends } = this.#parts;
    for (const entry of active.values()) {
      const { id, ending, stageDeadlineMs } = entry.job;
      if (ending !== null || stageDeadlineMs === null || stageDeadlineMs > nowMs) continue;
      if ((stageEndsMs(entry, backends) ?? nowMs) <= nowMs) overdue.push(id);
    }
    overdue.push(...this.#parts.store.queue.pastDeadline(nowMs));
    if (overdue.length > 0) this.#parts.endOverdue(overdue);
  }
}
