import { ERRORS, type ErrorBody } from "../errors.ts";
import type { Allowance } from "../jobs/allowance.ts";
import type { Job } from "../jobs/job.ts";
import { transition } from "../jobs/transitions.ts";
import type { SandboxHandle } from "../sandbox/sandbox.ts";
import { timeLeftMs } from "../store/paused-table.ts";
import { toJob } from "../store/rows.ts";
import { withWaits } from "./held-back.ts";
import type { RolloutPaused, StageFinished } from "./messages.ts";
import type { Parking } from "./parking.ts";
import type { ActiveJob, SchedulerParts } from "./parts.ts";
import type { PoolWorker } from "./pool.ts";

type PauseParts = Pick<SchedulerParts, "store" | "clock" | "backends" | "isTight"> & {
  settings: { maxPausedAlive: number };
  active: Map<string, ActiveJob>;
  parking: Parking;
  /** What a member of a group may do in RUN for its batch, and whether it may wait in its sandbox for the next one. */
  allowanceOf(groupSeq: number): { allowance: Allowance | null; stays: boolean };
  tell(job: Job): void;
  afterCommit(effect: () => void): void;
};

/**
 * Rollouts that wait between two batches. They have no slot and no time limit. Some stay alive in their thread, with
 * sandbox and shells, at their turn; of those beyond a bound, of those whose batch says so, and of all after a restart
 * the record is left, which their next RUN begins with. All but the constructor inside a tick.
 */
export class Pauses {
  readonly #parts: PauseParts;
  /** Those that are alive in a thread, by the id of the job. */
  readonly #alive = new Map<string, ActiveJob>();
  /** All that are paused, by the job's seq. */
  readonly #paused: Set<number>;
  /** Stays in RUN that were given up, as `id.attempt`, with the threads that have not confirmed it. */
  readonly #leaving = new Map<string, PoolWorker>();

  constructor(parts: PauseParts) {
    this.#parts = parts;
    this.#paused = new Set(parts.store.paused.paused());
  }

  get alive(): number {
    return this.#alive.size;
  }

  get parked(): number {
    return this.#paused.size - this.#alive.size;
  }

  isPaused(seq: number): boolean {
    return this.#paused.has(seq);
  }

  /** A thread says so. Its slot is free from now on. */
  note({ jobId, attempt, renewal, record }: RolloutPaused): void {
    const { active, store, clock, backends } = this.#parts;
    const entry = active.get(jobId);
    const isCurrent = entry?.job.attempt === attempt && entry.renewals === renewal;
    // It may have been allowed more, or be about to end, by a message that is on its way to it.
    if (!entry || !isCurrent || entry.job.ending !== null) return;
    active.delete(jobId);
    entry.worker.jobIds.delete(jobId);
    const { seq } = entry;
    const job = withWaits(entry, this.#parts);
    if (entry.backendId) backends.release(jobId, false);
    const stays = this.#mayStay(seq);
    this.#hold(seq, job, stays, record);
    store.saveTrajectory(seq, attempt, record);
    if (!stays) this.#dismiss(entry);
    else this.#alive.set(jobId, { ...entry, job: transition(job, PAUSED, clock.nowMs()) });
  }

  /** The thread in which a rollout waits that gets its slot back; null where only its record does. */
  take(jobId: string): ActiveJob | null {
    const entry = this.#alive.get(jobId) ?? null;
    this.#alive.delete(jobId);
    return entry;
  }

  /** Another batch goes on with it: a rollout that is paused comes back, and one that runs may do as much again. */
  goOn(seq: number): void {
    const { store, clock, active, tell } = this.#parts;
    const row = store.jobBySeq(seq);
    if (!row) return;
    const entry = active.get(row.id);
    if (entry) this.#allow(entry);
    if (!this.#paused.delete(seq)) return;
    const leftMs = store.paused.leftMs(seq);
    const job = toJob(row);
    const next = transition(job, { type: "continued", leftMs }, clock.nowMs());
    store.updateJob(seq, job, next);
    store.paused.release(seq, next.deadlineMs);
    tell(next);
  }

  /** Has it wait for another batch with its record alone, as soon as it can: one that runs at the end of its turn. */
  putAside(seq: number): void {
    const { store, active, parking } = this.#parts;
    const row = store.jobBySeq(seq);
    if (!row || row.stage === "eval" || row.finished_ms !== null) return;
    const entry = active.get(row.id);
    // One in INIT is paused when its RUN begins.
    if (entry) {
      if (entry.job.stage === "run") this.#allow(entry);
      return;
    }
    const alive = this.take(row.id);
    if (this.#paused.has(seq) && !alive) return;
    this.#hold(seq, toJob(row), false, null);
    if (alive) this.#dismiss(alive);
    const waiting = parking.take(row.id);
    if (waiting) parking.end(waiting);
  }

  /** A job is over, or begins anew: nothing of its pause is left. */
  over({ id, failures }: Job, seq: number, isFinal: boolean): void {
    const { store } = this.#parts;
    const alive = this.take(id);
    if (alive) this.#dismiss(alive);
    if (failures.at(-1)?.error.code === "replay_diverged") store.paused.forgetRecord(seq);
    if (!isFinal) return;
    this.#paused.delete(seq);
    store.paused.over(seq);
  }

  /** Whether this is the end of a RUN that had been paused, which nobody waits for. */
  confirms({ jobId, attempt, handle }: StageFinished): boolean {
    const alive = this.#alive.get(jobId);
    const isLost = alive?.job.attempt === attempt;
    if (isLost && alive) this.#lose(alive);
    if (!this.#leaving.delete(`${jobId}.${attempt}`) && !isLost) return false;
    if (handle) this.#parts.parking.end(handle);
    return true;
  }

  /** The thread is gone, and with it all that was alive in it. */
  workerLost(worker: PoolWorker): void {
    for (const entry of [...this.#alive.values()]) {
      if (entry.worker !== worker) continue;
      this.#lose(entry);
      for (const handle of entry.handles) this.#parts.parking.end(handle);
    }
    for (const [stay, thread] of this.#leaving) if (thread === worker) this.#leaving.delete(stay);
  }

  /** The service stops: the rows say that they are paused, and the next start finds the records. */
  endAll(): void {
    for (const { handles } of this.#alive.values()) this.#end(handles);
    this.#alive.clear();
  }

  /** Of a rollout that is about to enter RUN. */
  allowance(groupSeq: number | null): Allowance | null {
    return groupSeq === null ? null : this.#parts.allowanceOf(groupSeq).allowance;
  }

  #mayStay(seq: number): boolean {
    const { store, settings, isTight, allowanceOf } = this.#parts;
    const groupSeq = store.jobBySeq(seq)?.group_seq ?? null;
    if (groupSeq === null || !allowanceOf(groupSeq).stays) return false;
    return this.#alive.size < settings.maxPausedAlive && !isTight();
  }

  #allow(entry: ActiveJob): void {
    const { store } = this.#parts;
    const groupSeq = store.jobBySeq(entry.seq)?.group_seq ?? null;
    this.send(entry, this.allowance(groupSeq));
  }

  /** Leaves with the tick's messages. */
  send(entry: ActiveJob, allowance: Allowance | null): void {
    const { id: jobId, attempt } = entry.job;
    const renewal = ++entry.renewals;
    entry.worker.outbox.push({ type: "allow_turns", jobId, attempt, renewal, allowance });
  }

  #hold(seq: number, job: Job, alive: boolean, record: string | null): void {
    const { store, clock, tell } = this.#parts;
    const nowMs = clock.nowMs();
    const next = transition(job, { type: "paused", alive }, nowMs);
    store.updateJob(seq, job, next);
    store.paused.hold(seq, timeLeftMs(job, nowMs), record);
    this.#paused.add(seq);
    tell(next);
  }

  /** Something ended under it: its record is left. */
  #lose({ job, seq }: ActiveJob): void {
    const row = this.#parts.store.jobBySeq(seq);
    this.#alive.delete(job.id);
    if (!row) return;
    const wasPaused = this.#paused.has(seq);
    this.#hold(seq, toJob(row), false, null);
    // It had been gone on with, and waited for its slot.
    if (!wasPaused) this.goOn(seq);
  }

  /** Its thread is told to let go of it, and its sandbox ends without waiting for that. */
  #dismiss({ job, worker, handles }: ActiveJob): void {
    const { id: jobId, attempt } = job;
    this.#leaving.set(`${jobId}.${attempt}`, worker);
    worker.outbox.push({ type: "cancel", jobId, attempt, reason: NOT_KEPT });
    this.#parts.afterCommit(() => this.#end(handles));
  }

  #end(handles: SandboxHandle[]): void {
    for (const handle of handles) this.#parts.parking.end(handle);
  }
}

const PAUSED = { type: "paused", alive: true } as const;

const { boundary, retryable } = ERRORS.not_needed;
const NOT_KEPT: ErrorBody = {
  code: "not_needed",
  message: "only the record of the paused rollout is kept",
  ...{ boundary, retryable },
};
