import { type ErrorDetails, ServiceError } from "../errors.ts";
import type { ToTurn } from "../inference/turn-messages.ts";
import type { Stage } from "../jobs/job.ts";
import { type JobEvent, transition } from "../jobs/transitions.ts";
import type { SandboxHandle } from "../sandbox/sandbox.ts";
import type { JobResult } from "../store/job-table.ts";
import type { ImageGate } from "./image-gate.ts";
import type { JobChanges } from "./job-changes.ts";
import type { FromWorker, StageFinished } from "./messages.ts";
import type { Parking } from "./parking.ts";
import type { ActiveJob, SchedulerParts } from "./parts.ts";
import type { Pauses } from "./pauses.ts";
import type { Pool, PoolWorker } from "./pool.ts";
import type { Ticker } from "./ticker.ts";
import type { WarmPool } from "./warm-pool.ts";

type EventParts = SchedulerParts & {
  active: Map<string, ActiveJob>;
  pools: Record<Stage, Pool>;
  ticker: Ticker;
  changes: JobChanges;
  parking: Parking;
  images: ImageGate;
  warm: WarmPool;
  pauses: Pauses;
  /** No more work is begun. */
  closed(): boolean;
};

/** What worker threads say, and what it means for their jobs that one of them says nothing any more. */
export class WorkerEvents {
  readonly #parts: EventParts;
  /** Ends of each stage that are to be booked in the next tick, or in the rest of this one. */
  readonly #leaving: Record<Stage, number> = { init: 0, run: 0, eval: 0 };
  /** Jobs that went back to the queue in a drain before their time to end was over. */
  cutEarly = 0;
  /** Answers of attempts that were over. */
  staleAnswers = 0;

  constructor(parts: EventParts) {
    this.#parts = parts;
  }

  /** To the thread that works on a job. Nothing of it is durable, so it waits for no commit. */
  tell(message: ToTurn): void {
    const entry = this.#parts.active.get(message.jobId);
    if (!entry || entry.job.attempt !== message.attempt) return;
    if (entry.worker.outbox.push(message) > 1) return;
    queueMicrotask(() => this.#parts.pools[entry.worker.stage].flush());
  }

  receive(events: FromWorker[]): void {
    for (const event of events) {
      if (event.type === "sandbox_started") this.#noteSandbox(event);
      else if (event.type === "warmed_up") this.#parts.ticker.enqueue(() => this.#warmedUp(event));
      else if (event.type === "image_found")
        this.#parts.ticker.enqueue(() => this.#imageFound(event));
      else if (event.type === "turn_wanted" || event.type === "turn_ended")
        this.#parts.backends.receive(event);
      else if (event.type === "rollout_paused")
        this.#parts.ticker.enqueue(() => this.#parts.pauses.note(event), event.record.length);
      else if (event.type === "slot_freed")
        this.#parts.ticker.enqueue(() => this.#slotFreed(event));
      else if (event.type === "stage_finished") {
        this.#leaving[event.stage]++;
        this.#parts.ticker.enqueue(() => this.#stageFinished(event), event.trajectory?.length);
      }
    }
  }

  #noteSandbox(event: Extract<FromWorker, { type: "sandbox_started" }>): void {
    const entry = this.#parts.active.get(event.jobId);
    if (entry && entry.job.attempt === event.attempt) entry.handles.push(event.handle);
    else this.#parts.sandboxes.kill(event.handle);
  }

  #warmedUp({ id, warm }: Extract<FromWorker, { type: "warmed_up" }>): void {
    if (!this.#parts.closed()) this.#parts.warm.started(id, warm);
    else if (warm) this.#parts.parking.end(warm.handle);
  }

  /** Its other jobs may start now. */
  #imageFound(event: Extract<FromWorker, { type: "image_found" }>): void {
    const entry = this.#parts.active.get(event.jobId);
    if (entry?.job.attempt !== event.attempt) return;
    entry.fetching = false;
    this.#parts.images.found(entry.image, event.path);
  }

  /** The tick that hears of it fills the slot. */
  #slotFreed({ jobId, attempt, stage }: Extract<FromWorker, { type: "slot_freed" }>): void {
    const entry = this.#parts.active.get(jobId);
    if (entry?.job.attempt !== attempt || entry.job.stage !== stage) return;
    if (entry.worker.jobIds.delete(jobId)) entry.worker.recording.add(jobId);
  }

  #stageFinished(event: StageFinished): void {
    this.#leaving[event.stage]--;
    const entry = this.#parts.active.get(event.jobId);
    if (entry?.job.attempt !== event.attempt && this.#parts.pauses.confirms(event)) return;
    if (!entry || entry.job.attempt !== event.attempt || entry.job.stage !== event.stage) {
      this.staleAnswers++;
      this.#parts.log.warn("a late answer was refused", {
        job: event.jobId,
        attempt: event.attempt,
        stage: event.stage,
      });
      if (event.handle) this.#parts.parking.end(event.handle);
      return;
    }
    // Who ends a batch job signals the sandboxes with the service: that is no attempt's failure.
    if (this.#parts.closed() && event.error?.code === "sandbox_died" && entry.job.ending === null) {
      const ended: JobEvent = { type: "end_requested", ending: "shutdown" };
      entry.job = transition(entry.job, ended, this.#parts.clock.nowMs());
      this.cutEarly++;
    }
    const outcome: JobEvent = event.error
      ? { type: "stage_failed", error: event.error }
      : { type: "stage_succeeded" };
    const result: JobResult = {};
    if (event.outcome !== null) result.outcome = event.outcome;
    if (event.sampledTokens) result.sampledTokens = event.sampledTokens;
    if (event.sandboxPeak) result.sandboxPeak = event.sandboxPeak;
    if (event.handle?.isolation) result.isolation = event.handle.isolation;
    if (event.verdict !== null) result.verdict = event.verdict;
    if (event.trajectory !== null) {
      this.#parts.store.saveTrajectory(entry.seq, event.attempt, event.trajectory);
    }
    if (event.turns) this.#parts.store.pastTurns.save(entry.seq, event.attempt, event.turns);
    this.#leave(entry, outcome, result, event.handle);
  }

  /** A thread runs something that does not let go of it, such as a loop that awaits nothing. */
  blocked(worker: PoolWorker, how: string): void {
    const kinds = new Set(
      [...worker.jobIds].flatMap((id) => this.#parts.active.get(id)?.row.task_kind ?? []),
    );
    const named = [...kinds].map((kind) => {
      const module = this.#parts.moduleOf?.(kind) ?? null;
      return module === null ? kind : `${kind} (${module})`;
    });
    const ran = named.length === 0 ? "nothing" : `the task kind ${named.join(", ")}`;
    const reason = `a thread of ${worker.stage.toUpperCase()} is blocked, by code that computes without awaiting: ${how}; in it ran ${ran}`;
    this.lost(worker, "worker_unresponsive", reason, { blocked: true, task_kinds: [...kinds] });
  }

  /** A thread is gone or hangs: its sandboxes are killed, its jobs settled, and a fresh one takes over. */
  lost(
    worker: PoolWorker,
    code: "worker_crashed" | "worker_unresponsive",
    reason: string,
    details?: ErrorDetails,
  ): void {
    this.#parts.log.error("a worker thread is replaced", { stage: worker.stage, code, reason });
    const ids = [...worker.jobIds, ...worker.recording];
    const entries = ids.flatMap((id) => this.#parts.active.get(id) ?? []);
    for (const { handles } of entries) for (const it of handles) this.#parts.sandboxes.kill(it);
    this.#parts.pools[worker.stage].respawn(worker);
    if (worker.stage === "init") this.#parts.warm.lost();
    // Of several any may be the reason, so that none is charged with it.
    const error = new ServiceError(code, reason, details ? { details } : {}).toBody();
    const blocked = details?.blocked === true;
    const ending: JobEvent =
      entries.length === 1 ? { type: "stage_failed", error } : { type: "thread_lost", blocked };
    this.#parts.ticker.enqueue(() => {
      this.#parts.pauses.workerLost(worker);
      for (const entry of entries) {
        if (this.#parts.active.get(entry.job.id) !== entry) continue;
        for (const handle of entry.handles) this.#parts.parking.end(handle);
        this.#leave(entry, ending, {}, null);
      }
    });
  }

  #leave(entry: ActiveJob, event: JobEvent, result: JobResult, handle: SandboxHandle | null): void {
    const behind = this.#leaving[entry.job.stage];
    this.#parts.changes.leave(entry, event, result, handle, behind);
  }
}
