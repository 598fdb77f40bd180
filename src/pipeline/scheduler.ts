import { ServiceError, toErrorBody } from "../errors.ts";
import type { Backend } from "../inference/engine.ts";
import { createJob, isFinal, type Job, type NewJob, type Stage } from "../jobs/job.ts";
import { type JobEvent, transition } from "../jobs/transitions.ts";
import type { Clock } from "../lib/clock.ts";
import type { SandboxHandle } from "../sandbox/sandbox.ts";
import { toJob } from "../store/rows.ts";
import type { JobResult, NewRow, Store } from "../store/store.ts";
import type { JobRow } from "../store/tables.ts";
import type { Log } from "../telemetry/log.ts";
import { Ladder } from "./ladder.ts";
import type { FromWorker, StageFinished } from "./messages.ts";
import { Pool, type PoolWorker, type SpawnWorker } from "./pool.ts";
import { Waiters } from "./waiters.ts";

/** Which inference server a new trajectory goes to. */
export interface BackendChooser {
  available(): boolean;
  /** Counts a trajectory on the chosen backend until `release`. */
  acquire(preferredId: string | null): Backend;
  release(id: string): void;
}

/** The part of the sandbox layer that the main thread uses. */
export interface SandboxKeeper {
  /** SIGKILL at once: the last rung of the ladder. */
  kill(handle: SandboxHandle): void;
  /** Ends it and proves that nothing is left. */
  end(handle: SandboxHandle): Promise<void>;
}

export type SchedulerSettings = {
  pools: Record<Stage, { threads: number; slots: number }>;
  maxSandboxesAhead: number;
  maxQueuedJobs: number;
  /** How long a worker has to confirm an end before its sandbox, and then its thread, is killed. */
  cancelGraceMs: number;
};

export type SchedulerParts = {
  store: Store;
  clock: Clock;
  log: Log;
  backends: BackendChooser;
  sandboxes: SandboxKeeper;
  spawn: SpawnWorker;
  settings: SchedulerSettings;
  /** A tick that can't be made durable: the service can't go on. */
  onFatal(error: unknown): void;
};

export type ActiveJob = {
  readonly seq: number;
  job: Job;
  readonly usesSandbox: boolean;
  readonly worker: PoolWorker;
  readonly backendId: string | null;
  handle: SandboxHandle | null;
  endAskedMs: number | null;
  killed: boolean;
};

export type Submission = { job: NewJob; row: NewRow };
export type Submitted = { id: string; created: boolean };
type Operation = { work: () => void; fail: (error: unknown) => void };

/**
 * The control plane's heart. Everything that happens in one turn of the event loop becomes one transaction:
 * the changes are applied, free slots are filled, and after the commit the workers and the waiting clients
 * hear of it.
 */
export class Scheduler {
  readonly waiters = new Waiters();
  readonly pools: Record<Stage, Pool>;
  readonly active = new Map<string, ActiveJob>();
  readonly #parts: SchedulerParts;
  readonly #ladder: Ladder;
  /** Sandboxes of jobs that wait between two stages. */
  readonly #parked = new Map<string, { handle: SandboxHandle; stage: Stage }>();
  readonly #disposals = new Set<Promise<void>>();
  #operations: Operation[] = [];
  #afterCommit: (() => void)[] = [];
  #tickPlanned = false;
  #draining = false;
  #queued: number;
  /** Answers of attempts that are over. */
  staleAnswers = 0;

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
    const pool = (stage: Stage) =>
      new Pool({
        stage,
        ...parts.settings.pools[stage],
        spawn: parts.spawn,
        onEvents: (events) => this.#receive(events),
        onCrash: (worker, reason) => this.#workerLost(worker, "worker_crashed", reason),
      });
    this.pools = { init: pool("init"), run: pool("run"), eval: pool("eval") };
    this.#queued = parts.store.unfinishedCounts().reduce((sum, row) => sum + row.count, 0);
    this.#ladder = new Ladder(this, parts, (worker) =>
      this.#workerLost(worker, "worker_unresponsive", "the worker did not confirm an end in time"),
    );
    this.#planTick();
  }

  get unfinished(): number {
    return this.#queued;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** Accepts all of `submissions`, or none. Resolves when they are durable. */
  submit(submissions: Submission[]): Promise<Submitted[]> {
    return this.#operate(() => {
      if (this.#draining) throw new ServiceError("shutting_down", "the service is stopping");
      const fresh = this.#withoutKnown(submissions);
      if (this.#queued + fresh.size > this.#parts.settings.maxQueuedJobs) {
        const message = `the queue is full (${this.#queued} unfinished jobs)`;
        throw new ServiceError("queue_full", message, { mend: "submit again later" });
      }
      const nowMs = this.#parts.clock.nowMs();
      for (const { job, row } of fresh) {
        this.#parts.store.insertJob(createJob(job, nowMs), row);
        this.#queued++;
      }
      return submissions.map((submission) => ({
        id: submission.job.id,
        created: fresh.has(submission),
      }));
    });
  }

  /** The first rung of the ladder, for one job. Null when it does not exist. */
  cancel(id: string): Promise<JobRow | null> {
    return this.#operate(() => {
      this.requestEnd(id, "cancel");
      return this.#parts.store.jobById(id);
    });
  }

  /** Marks a job; inside a tick only. A waiting job is final at once, an active one is told. */
  requestEnd(id: string, ending: "cancel" | "deadline" | "shutdown"): void {
    const nowMs = this.#parts.clock.nowMs();
    const entry = this.active.get(id);
    if (entry) {
      const next = transition(entry.job, { type: "end_requested", ending }, nowMs);
      if (next.ending === entry.job.ending) return;
      entry.job = next;
      this.#parts.store.updateJob(entry.seq, next);
      this.#afterCommit.push(() => this.#ladder.ask(entry, nowMs));
      return;
    }
    const row = this.#parts.store.jobById(id);
    if (!row) return;
    const job = toJob(row);
    const next = transition(job, { type: "end_requested", ending }, nowMs);
    if (next !== job) this.#settle(row.seq, next);
  }

  /** Runs `work` in the next tick's transaction; resolves after the commit. */
  operate(work: () => void): void {
    this.#operate(work).catch(this.#parts.onFatal);
  }

  /**
   * Stops claiming, gives active jobs `graceMs` to end by themselves (or until `hurry`), then hands the rest
   * back to the queue.
   */
  async drain(graceMs: number, hurry: Promise<unknown>): Promise<{ handedBack: number }> {
    this.#draining = true;
    this.waiters.notifyAll();
    let until = this.#parts.clock.nowMs() + graceMs;
    hurry.then(() => {
      until = 0;
    });
    while (this.active.size > 0 && this.#parts.clock.nowMs() < until) await Bun.sleep(10);
    const handedBack = this.active.size;
    await this.#operate(() => {
      for (const id of this.active.keys()) this.requestEnd(id, "shutdown");
    });
    while (this.active.size > 0) await Bun.sleep(5);
    for (const [id, { handle }] of this.#parked) this.#dispose(id, handle);
    this.#parked.clear();
    await Promise.all(this.#disposals);
    this.#ladder.stop();
    for (const pool of Object.values(this.pools)) pool.terminate();
    this.waiters.notifyAll();
    return { handedBack };
  }

  #operate<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      this.#operations.push({
        work: () => {
          const result = work();
          this.#afterCommit.push(() => resolve(result));
        },
        fail: reject,
      });
      this.#planTick();
    });
  }

  #planTick(): void {
    if (this.#tickPlanned) return;
    this.#tickPlanned = true;
    setImmediate(() => this.#tick());
  }

  #tick(): void {
    this.#tickPlanned = false;
    const operations = this.#operations;
    this.#operations = [];
    try {
      this.#parts.store.transaction(() => {
        for (const operation of operations) this.#perform(operation);
        if (!this.#draining) this.#fillSlots();
      });
    } catch (error) {
      for (const operation of operations) operation.fail(error);
      this.#parts.onFatal(error);
      return;
    }
    const effects = this.#afterCommit;
    this.#afterCommit = [];
    for (const effect of effects) effect();
    for (const pool of Object.values(this.pools)) pool.flush();
  }

  /** A refused operation has written nothing; any other error is a bug and undoes the whole tick. */
  #perform(operation: Operation): void {
    try {
      operation.work();
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      this.#afterCommit.push(() => operation.fail(error));
    }
  }

  #withoutKnown(submissions: Submission[]): Set<Submission> {
    const fresh = new Set<Submission>();
    const bodies = new Map<string, string>();
    for (const [index, submission] of submissions.entries()) {
      const { id } = submission.job;
      const known = bodies.get(id) ?? this.#parts.store.jobById(id)?.body_sha256;
      if (known === undefined) fresh.add(submission);
      else if (known !== submission.row.bodySha256) {
        throw new ServiceError("id_conflict", `rollout "${id}" exists with another body`, {
          field: `rollouts[${index}].id`,
          mend: "use a new id for a new rollout",
        });
      }
      bodies.set(id, submission.row.bodySha256);
    }
    return fresh;
  }

  /** Later stages first: what has begun is finished before more is begun. */
  #fillSlots(): void {
    for (const stage of ["eval", "run", "init"] as const) {
      const limit = this.pools[stage].freeSlots();
      if (limit <= 0) continue;
      let ahead = stage === "init" ? this.#sandboxesAhead() : 0;
      const sandbox = ahead < this.#parts.settings.maxSandboxesAhead;
      const backend = stage !== "run" || this.#parts.backends.available();
      for (const row of this.#parts.store.claimable({ stage, limit, sandbox, backend })) {
        if (stage === "init" && row.uses_sandbox) {
          if (ahead >= this.#parts.settings.maxSandboxesAhead) continue;
          ahead++;
        }
        this.#claim(row);
      }
    }
  }

  #sandboxesAhead(): number {
    let ahead = 0;
    for (const { stage } of this.#parked.values()) if (stage === "run") ahead++;
    for (const { job, usesSandbox } of this.active.values()) {
      if (usesSandbox && job.stage === "init") ahead++;
    }
    return ahead;
  }

  #claim(row: JobRow): void {
    const job = this.#apply(row, { type: "stage_started" });
    const needsBackend = job.stage === "run" && row.needs_backend === 1;
    const backend = needsBackend ? this.#parts.backends.acquire(row.backend_id) : null;
    const handle = this.#parked.get(job.id)?.handle ?? null;
    this.#parked.delete(job.id);
    const worker = this.pools[job.stage].start({
      type: "start",
      jobId: job.id,
      attempt: job.attempt,
      stage: job.stage,
      taskKind: row.task_kind,
      instance: row.instance,
      options: row.options,
      handle,
      backend,
      outcome: row.outcome,
    });
    this.#parts.store.updateJob(row.seq, job, backend ? { backendId: backend.id } : {});
    this.active.set(job.id, {
      seq: row.seq,
      job,
      usesSandbox: row.uses_sandbox === 1,
      worker,
      backendId: backend?.id ?? null,
      handle,
      endAskedMs: null,
      killed: false,
    });
  }

  #apply(row: JobRow, event: JobEvent): Job {
    return transition(toJob(row), event, this.#parts.clock.nowMs());
  }

  #receive(events: FromWorker[]): void {
    for (const event of events) {
      if (event.type === "sandbox_started") this.#noteSandbox(event);
      else if (event.type === "stage_finished") this.operate(() => this.#stageFinished(event));
    }
  }

  #noteSandbox(event: Extract<FromWorker, { type: "sandbox_started" }>): void {
    const entry = this.active.get(event.jobId);
    if (entry && entry.job.attempt === event.attempt) entry.handle = event.handle;
    else this.#parts.sandboxes.kill(event.handle);
  }

  #stageFinished(event: StageFinished): void {
    const entry = this.active.get(event.jobId);
    if (!entry || entry.job.attempt !== event.attempt || entry.job.stage !== event.stage) {
      this.staleAnswers++;
      this.#parts.log.warn("a late answer was refused", {
        job: event.jobId,
        attempt: event.attempt,
        stage: event.stage,
      });
      if (event.handle) this.#dispose(event.jobId, event.handle);
      return;
    }
    const outcome: JobEvent = event.error
      ? { type: "stage_failed", error: event.error }
      : { type: "stage_succeeded" };
    const result: JobResult = {};
    if (event.outcome !== null) result.outcome = event.outcome;
    if (event.verdict !== null) result.verdict = event.verdict;
    if (event.trajectory !== null) {
      this.#parts.store.saveTrajectory(entry.seq, event.attempt, event.trajectory);
    }
    this.#leave(entry, outcome, result, event.handle);
  }

  /** Takes a job out of its slot and books what became of it. */
  #leave(entry: ActiveJob, event: JobEvent, result: JobResult, handle: SandboxHandle | null): void {
    const next = transition(entry.job, event, this.#parts.clock.nowMs());
    this.active.delete(next.id);
    entry.worker.jobIds.delete(next.id);
    if (entry.backendId) this.#parts.backends.release(entry.backendId);
    // A verdict that lost the race against a cancel is not a reward.
    if (next.state !== "succeeded") delete result.verdict;
    this.#settle(entry.seq, next, result, handle);
  }

  #settle(seq: number, next: Job, result?: JobResult, handle?: SandboxHandle | null): void {
    this.#parts.store.updateJob(seq, next, result);
    const parked = this.#parked.get(next.id)?.handle ?? handle ?? null;
    const goesOn = next.state === "pending" && next.stage !== "init";
    if (parked && goesOn) this.#parked.set(next.id, { handle: parked, stage: next.stage });
    if (parked && !goesOn) {
      this.#parked.delete(next.id);
      this.#dispose(next.id, parked);
    }
    if (!isFinal(next)) return;
    this.#queued--;
    this.#afterCommit.push(() => this.waiters.notify(next.id));
  }

  #dispose(jobId: string, handle: SandboxHandle): void {
    const disposal = this.#parts.sandboxes.end(handle).catch((error) => {
      this.#parts.log.error("a sandbox could not be cleaned up", {
        job: jobId,
        error: toErrorBody(error),
      });
    });
    this.#disposals.add(disposal);
    disposal.finally(() => this.#disposals.delete(disposal));
  }

  /** A thread is gone or hangs: its sandboxes are killed, its jobs settled, and a fresh one takes over. */
  #workerLost(
    worker: PoolWorker,
    code: "worker_crashed" | "worker_unresponsive",
    reason: string,
  ): void {
    this.#parts.log.error("a worker thread is replaced", { stage: worker.stage, code, reason });
    const entries = [...worker.jobIds].flatMap((id) => this.active.get(id) ?? []);
    for (const { handle } of entries) if (handle) this.#parts.sandboxes.kill(handle);
    this.pools[worker.stage].respawn(worker);
    this.operate(() => {
      for (const entry of entries) {
        if (this.active.get(entry.job.id) !== entry) continue;
        const error = new ServiceError(code, reason).toBody();
        this.#leave(entry, { type: "stage_failed", error }, {}, entry.handle);
      }
    });
  }
}
