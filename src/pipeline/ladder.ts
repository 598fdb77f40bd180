import { ERRORS, type ErrorBody, type ErrorCode } from "../errors.ts";
import type { Ending } from "../jobs/job.ts";
import type { PoolWorker } from "./pool.ts";
import type { ActiveJob, Scheduler, SchedulerParts } from "./scheduler.ts";

/** How often deadlines and unanswered ends are looked at. */
const SWEEP_MS = 25;

const REASONS: Record<Ending, { code: ErrorCode; message: string }> = {
  cancel: { code: "cancelled", message: "cancelled" },
  deadline: { code: "deadline_exceeded", message: "a deadline passed" },
  shutdown: { code: "shutting_down", message: "the service is stopping" },
};

/**
 * The one way in which anything is ended early: ask the worker, kill the sandbox when it does not confirm,
 * replace the thread when even that does not help.
 */
export class Ladder {
  readonly #scheduler: Scheduler;
  readonly #parts: SchedulerParts;
  readonly #replace: (worker: PoolWorker) => void;
  readonly #timer: Timer;

  constructor(scheduler: Scheduler, parts: SchedulerParts, replace: (worker: PoolWorker) => void) {
    this.#scheduler = scheduler;
    this.#parts = parts;
    this.#replace = replace;
    this.#timer = setInterval(() => this.#sweep(), SWEEP_MS);
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Tells the worker. The row stays active until it confirms. */
  ask(entry: ActiveJob, nowMs: number): void {
    const { job, worker } = entry;
    if (job.ending === null || this.#scheduler.active.get(job.id) !== entry) return;
    entry.endAskedMs ??= nowMs;
    const { code, message } = REASONS[job.ending];
    const { boundary, retryable } = ERRORS[code];
    const reason: ErrorBody = { code, message, boundary, retryable };
    worker.outbox.push({ type: "cancel", jobId: job.id, attempt: job.attempt, reason });
  }

  #sweep(): void {
    const nowMs = this.#parts.clock.nowMs();
    this.#endOverdue(nowMs);
    const grace = this.#parts.settings.cancelGraceMs;
    const stuck = new Set<PoolWorker>();
    for (const entry of this.#scheduler.active.values()) {
      if (entry.endAskedMs === null) continue;
      const waitedMs = nowMs - entry.endAskedMs;
      if (waitedMs > 2 * grace) stuck.add(entry.worker);
      else if (waitedMs > grace && entry.handle && !entry.killed) {
        entry.killed = true;
        this.#parts.sandboxes.kill(entry.handle);
      }
    }
    for (const worker of stuck) this.#replace(worker);
  }

  #endOverdue(nowMs: number): void {
    const overdue: string[] = [];
    for (const { job } of this.#scheduler.active.values()) {
      if (job.ending === null && job.stageDeadlineMs !== null && job.stageDeadlineMs <= nowMs) {
        overdue.push(job.id);
      }
    }
    for (const row of this.#parts.store.pendingPastDeadline(nowMs)) overdue.push(row.id);
    if (overdue.length === 0) return;
    this.#scheduler.operate(() => {
      for (const id of overdue) this.#scheduler.requestEnd(id, "deadline");
    });
  }
}
