import { type ErrorBody, ServiceError } from "../errors.ts";
import type { ToTurn } from "../inference/turn-messages.ts";
import { type Ending, isFinal, type Job, type Stage } from "../jobs/job.ts";
import { type JobEvent, transition } from "../jobs/transitions.ts";
import type { SandboxHandle } from "../sandbox/sandbox.ts";
import type { JobResult } from "../store/job-table.ts";
import { toJob } from "../store/rows.ts";
import type { JobRow } from "../store/tables.ts";
import { Batches } from "./batches.ts";
import { EventFeed } from "./event-feed.ts";
import { Groups } from "./groups.ts";
import { Heartbeat } from "./heartbeat.ts";
import { withWaits } from "./held-back.ts";
import { ImageGate } from "./image-gate.ts";
import { Intake } from "./intake.ts";
import { Ladder } from "./ladder.ts";
import type { FromWorker, StageFinished } from "./messages.ts";
import { Parking } from "./parking.ts";
import type { Accepted, ActiveJob, SchedulerParts, Submission, Submitted } from "./parts.ts";
import { Pauses } from "./pauses.ts";
import { Pool, type PoolWorker } from "./pool.ts";
import { Slots } from "./slots.ts";
import { Suspects } from "./suspects.ts";
import { Ticker } from "./ticker.ts";
import { Waiters } from "./waiters.ts";
import { WarmPool } from "./warm-pool.ts";

/** How often a drain looks whether the active jobs are over. */
const DRAIN_POLL_MS = 5;
const DEFAULT_STALL_MS = 60_000;
const DEFAULT_MAX_CRASHES = 2;

/**
 * The control plane's heart: it takes what happens (submits, cancels, workers' answers, deadlines), lets
 * `transition` decide, and fills the free slots. All of one turn of the event loop is one transaction, and
 * only after its commit do workers and clients hear of it.
 */
export class Scheduler {
  readonly waiters = new Waiters();
  readonly feed = new EventFeed();
  readonly pools: Record<Stage, Pool>;
  readonly active = new Map<string, ActiveJob>();
  readonly groups: Groups;
  readonly batches: Batches;
  readonly pauses: Pauses;
  readonly #parts: SchedulerParts;
  readonly #ticker: Ticker;
  readonly #intake: Intake;
  readonly #ladder: Ladder;
  readonly #parking: Parking;
  readonly #images: ImageGate;
  readonly #warm: WarmPool;
  readonly #slots: Slots;
  readonly #suspects: Suspects;
  readonly #heartbeat: Heartbeat;
  /** Ends of each stage that are to be booked in the next tick, or in the rest of this one. */
  readonly #leaving: Record<Stage, number> = { init: 0, run: 0, eval: 0 };
  #draining = false;
  /** Jobs that went back to the queue in a drain before their time to end was over. */
  #cutEarly = 0;
  /** Answers of attempts that were over. */
  staleAnswers = 0;

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
    const { store, sandboxes, settings, spawn, imageOnNode, onFatal } = parts;
    const pool = (stage: Stage) =>
      new Pool({
        stage,
        ...settings.pools[stage],
        spawn,
        onEvents: (events) => this.#receive(events),
        onCrash: (worker, reason) => this.#workerLost(worker, "worker_crashed", reason),
      });
    this.pools = { init: pool("init"), run: pool("run"), eval: pool("eval") };
    this.#intake = new Intake({
      ...parts,
      closed: () => this.#draining,
      operate: (work) => this.#ticker.operate(work),
      tell: (job) => this.#tell(job),
    });
    this.#parking = new Parking(sandboxes, (jobId, error) =>
      this.#ticker.enqueue(() => this.#sandboxLost(jobId, error)),
    );
    this.#images = new ImageGate(settings.imagesAtOnce, imageOnNode);
    this.#warm = new WarmPool({
      size: settings.warmSandboxes,
      nowMs: () => parts.clock.nowMs(),
      start: (id, image) => this.pools.init.idlest().outbox.push({ type: "warm_up", id, image }),
      end: (handle) => this.#parking.end(handle),
      isTight: parts.isTight,
      wake: () => this.#ticker.enqueue(() => {}),
    });
    this.pauses = new Pauses({
      ...{ ...parts, active: this.active, parking: this.#parking },
      allowanceOf: (groupSeq) => this.batches.allowance(groupSeq),
      tell: (job) => this.#tell(job),
      afterCommit: (effect) => this.#ticker.afterCommit(effect),
    });
    const { maxCrashes = DEFAULT_MAX_CRASHES } = settings;
    this.#suspects = new Suspects(maxCrashes, store.inCrashes(Math.max(1, maxCrashes)));
    this.#slots = new Slots({
      ...{ ...parts, pauses: this.pauses },
      ...{ pools: this.pools, active: this.active, parking: this.#parking },
      ...{
        images: this.#images,
        warm: this.#warm,
        suspects: this.#suspects,
        tell: (job) => this.#tell(job),
      },
    });
    this.#ladder = new Ladder({
      ...parts,
      active: this.active,
      endOverdue: (ids) =>
        this.#ticker.enqueue(() => {
          for (const id of ids) this.#requestEnd(id, "deadline");
        }),
      endUnleased: (ids) => this.cancelAll(ids, "its lease was not renewed").catch(onFatal),
      releaseDelayed: () => this.#ticker.enqueue(() => store.releaseDelayed(parts.clock.nowMs())),
      replace: (worker) =>
        this.#workerLost(worker, "worker_unresponsive", "no end was confirmed in time"),
    });
    const { stallMs = DEFAULT_STALL_MS } = settings;
    const silence = `no sign of life for ${stallMs} ms`;
    const onStuck = (worker: PoolWorker) =>
      this.#workerLost(worker, "worker_unresponsive", silence);
    this.#heartbeat = new Heartbeat(Object.values(this.pools), stallMs, onStuck, parts.every);
    this.#ticker = new Ticker({
      store,
      ...(parts.room ? { room: parts.room } : {}),
      onFatal,
      fillSlots: () => this.#fillSlots(),
      send: () => {
        for (const pool of Object.values(this.pools)) pool.flush();
      },
    });
    const wake = () => this.#ticker.enqueue(() => {});
    parts.backends.connect((message) => this.#tellThread(message), wake);
    this.groups = new Groups({
      ...parts,
      feed: this.feed,
      operate: (work) => this.#ticker.operate(work),
      afterCommit: (effect) => this.#ticker.afterCommit(effect),
      expectRoom: (count) => this.#intake.expectRoom(count),
      insertJob: (submission) => this.#intake.insert(submission),
      pauses: this.pauses,
      endJob: (id) => this.#requestEnd(id, "cancel"),
    });
    this.batches = new Batches({
      ...{ store, clock: parts.clock, groups: this.groups, settings, feed: this.feed },
      operate: (work) => this.#ticker.operate(work),
      afterCommit: (effect) => this.#ticker.afterCommit(effect),
      room: (client) => this.#slots.roomAheadOfRun(client),
      versionsSince: (ms) => parts.versionsSince?.(ms) ?? 0,
    });
    this.#ticker.enqueue(() => this.groups.resume());
  }

  get unfinished(): number {
    return this.#parts.store.counts.total;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** Accepts all of `submissions`, or none. Resolves when they are durable. */
  async submit(submissions: Submission[]): Promise<Accepted[]> {
    // Said at once: on a full disk a tick waits.
    this.#intake.expectDisk();
    return this.#intake.submit(submissions);
  }

  /** What `submit` would do, without doing it. */
  dryRun(submissions: Submission[]): Submitted[] {
    const fresh = this.#intake.admit(submissions);
    return submissions.map((one) => ({ id: one.job.id, created: fresh.has(one) }));
  }

  /** The first rung of the ladder, for one job. Null when it does not exist. */
  cancel(id: string): Promise<JobRow | null> {
    return this.#ticker.operate(() => {
      this.#requestEnd(id, "cancel");
      return this.#parts.store.jobById(id);
    });
  }

  /** The same for many, in one durable step. */
  cancelAll(ids: string[], reason?: string): Promise<void> {
    return this.#ticker.operate(() => {
      for (const id of ids) this.#requestEnd(id, "cancel", reason);
    });
  }

  /** Renews leases; resolves with the ids that had one to renew. */
  renew(ids: string[]): Promise<string[]> {
    return this.#ticker.operate(() => {
      const nowMs = this.#parts.clock.nowMs();
      return ids.filter((id) => this.#parts.store.leases.renew(id, nowMs));
    });
  }

  /** Marks a job; inside a tick only. A waiting job is final at once, an active one is told. */
  #requestEnd(id: string, ending: Ending, reason?: string): void {
    const request = { type: "end_requested", ending, ...(reason ? { reason } : {}) } as const;
    const nowMs = this.#parts.clock.nowMs();
    const entry = this.active.get(id);
    if (entry) {
      const next = transition(withWaits(entry, this.#parts), request, nowMs);
      if (next.ending === entry.job.ending) return;
      this.#parts.store.updateJob(entry.seq, entry.job, next);
      entry.job = next;
      this.#ticker.afterCommit(() => this.#ladder.ask(entry, nowMs));
      return;
    }
    const row = this.#parts.store.jobById(id);
    if (!row) return;
    const job = toJob(row);
    const next = transition(job, request, nowMs);
    if (next !== job) this.#settle(row.seq, job, next);
  }

  /**
   * Stops claiming, gives active jobs `graceMs` to end by themselves (or until `hurry`), then hands the rest
   * back to the queue.
   */
  async drain(graceMs: number, hurry: Promise<unknown>): Promise<{ handedBack: number }> {
    this.#draining = true;
    this.waiters.notifyAll();
    this.groups.waiters.notifyAll();
    this.batches.waiters.notifyAll();
    this.batches.stop();
    let until = this.#parts.clock.nowMs() + graceMs;
    hurry.then(() => {
      until = 0;
    });
    while (this.active.size > 0 && this.#parts.clock.nowMs() < until) {
      await Bun.sleep(DRAIN_POLL_MS);
    }
    const handedBack = this.active.size + this.#cutEarly;
    await this.#ticker.operate(() => {
      for (const id of this.active.keys()) this.#requestEnd(id, "shutdown");
    });
    while (this.active.size > 0) await Bun.sleep(DRAIN_POLL_MS);
    this.#warm.endAll();
    this.pauses.endAll();
    await this.#parking.endAll();
    this.#ladder.stop();
    this.#heartbeat[Symbol.dispose]();
    for (const pool of Object.values(this.pools)) pool.terminate();
    this.waiters.notifyAll();
    return { handedBack };
  }

  #fillSlots(): void {
    if (this.#draining) return;
    this.batches.replenish();
    this.#slots.fill();
  }

  /** To the thread that works on a job. Nothing of it is durable, so it waits for no commit. */
  #tellThread(message: ToTurn): void {
    const entry = this.active.get(message.jobId);
    if (!entry || entry.job.attempt !== message.attempt) return;
    if (entry.worker.outbox.push(message) > 1) return;
    queueMicrotask(() => this.pools[entry.worker.stage].flush());
  }

  #receive(events: FromWorker[]): void {
    for (const event of events) {
      if (event.type === "sandbox_started") this.#noteSandbox(event);
      else if (event.type === "warmed_up") this.#ticker.enqueue(() => this.#warmedUp(event));
      else if (event.type === "image_found") this.#ticker.enqueue(() => this.#imageFound(event));
      else if (event.type === "turn_wanted" || event.type === "turn_ended")
        this.#parts.backends.receive(event);
      else if (event.type === "rollout_paused")
        this.#ticker.enqueue(() => this.pauses.note(event), event.record.length);
      else if (event.type === "stage_finished") {
        this.#leaving[event.stage]++;
        this.#ticker.enqueue(() => this.#stageFinished(event), event.trajectory?.length);
      }
    }
  }

  #noteSandbox(event: Extract<FromWorker, { type: "sandbox_started" }>): void {
    const entry = this.active.get(event.jobId);
    if (entry && entry.job.attempt === event.attempt) entry.handles.push(event.handle);
    else this.#parts.sandboxes.kill(event.handle);
  }

  #warmedUp({ id, warm }: Extract<FromWorker, { type: "warmed_up" }>): void {
    if (!this.#draining) this.#warm.started(id, warm);
    else if (warm) this.#parking.end(warm.handle);
  }

  /** Its other jobs may start now. */
  #imageFound(event: Extract<FromWorker, { type: "image_found" }>): void {
    const entry = this.active.get(event.jobId);
    if (entry?.job.attempt !== event.attempt) return;
    entry.fetching = false;
    this.#images.found(entry.image, event.path);
  }

  #stageFinished(event: StageFinished): void {
    this.#leaving[event.stage]--;
    const entry = this.active.get(event.jobId);
    if (entry?.job.attempt !== event.attempt && this.pauses.confirms(event)) return;
    if (!entry || entry.job.attempt !== event.attempt || entry.job.stage !== event.stage) {
      this.staleAnswers++;
      this.#parts.log.warn("a late answer was refused", {
        job: event.jobId,
        attempt: event.attempt,
        stage: event.stage,
      });
      if (event.handle) this.#parking.end(event.handle);
      return;
    }
    // Who ends a batch job signals the sandboxes with the service: that is no attempt's failure.
    if (this.#draining && event.error?.code === "sandbox_died" && entry.job.ending === null) {
      const ended: JobEvent = { type: "end_requested", ending: "shutdown" };
      entry.job = transition(entry.job, ended, this.#parts.clock.nowMs());
      this.#cutEarly++;
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

  /** Takes a job out of its slot and books what became of it. */
  #leave(entry: ActiveJob, event: JobEvent, result: JobResult, handle: SandboxHandle | null): void {
    const next = transition(withWaits(entry, this.#parts), event, this.#parts.clock.nowMs());
    this.active.delete(next.id);
    entry.worker.jobIds.delete(next.id);
    if (entry.fetching) this.#images.left(entry.image);
    if (entry.backendId) {
      this.#parts.backends.release(next.id, event.type === "stage_succeeded");
    }
    // A verdict that lost the race against a cancel is not a reward.
    if (next.state !== "succeeded") delete result.verdict;
    const comers = 1 + this.#leaving[entry.job.stage];
    if (!this.#draining && this.#slots.goOn(entry, next, result, handle, comers)) return;
    this.#settle(entry.seq, entry.job, next, result, handle);
  }

  #settle(
    seq: number,
    from: Job,
    next: Job,
    result?: JobResult,
    handle?: SandboxHandle | null,
  ): void {
    this.#parts.store.updateJob(seq, from, next, result);
    this.#suspects.note(next);
    const sandbox = this.#parking.take(next.id) ?? handle;
    const goesOn = next.state === "pending" && next.stage !== "init" && !this.#isSpare(next);
    if (sandbox && goesOn) this.#parking.park(next.id, sandbox, next.stage);
    if (sandbox && !goesOn) this.#parking.end(sandbox);
    this.#tell(next);
    this.pauses.over(next, seq, isFinal(next));
    if (!isFinal(next)) return;
    this.groups.jobEnded(seq);
    this.#ticker.afterCommit(() => this.waiters.notify(next.id));
  }

  /** Between two stages. One that EVAL would start for itself anyway is no loss. */
  #sandboxLost(jobId: string, error: ErrorBody): void {
    const handle = this.#parking.take(jobId);
    const row = this.#parts.store.jobById(jobId);
    // Without one it has gone on with the job, whose thread finds out as well.
    if (!handle || !row) return;
    this.#parking.end(handle);
    const job = toJob(row);
    if (job.stage === "eval" && job.evalFromRecord) return;
    const next = transition(job, { type: "sandbox_lost", error }, this.#parts.clock.nowMs());
    this.#settle(row.seq, job, next);
  }

  #tell(job: Job): void {
    this.#ticker.afterCommit(() => this.feed.publish(job));
  }

  /** EVAL's fresh sandbox, where as many wait already as may: EVAL then starts it itself. */
  #isSpare({ stage, evalFromRecord }: Job): boolean {
    const free = Math.max(0, this.pools.eval.freeSlots());
    const allowed = free + this.#parts.settings.maxSandboxesAhead;
    return stage === "eval" && evalFromRecord && this.#parking.waitingFor("eval") >= allowed;
  }

  /** A thread is gone or hangs: its sandboxes are killed, its jobs settled, and a fresh one takes over. */
  #workerLost(
    worker: PoolWorker,
    code: "worker_crashed" | "worker_unresponsive",
    reason: string,
  ): void {
    this.#parts.log.error("a worker thread is replaced", { stage: worker.stage, code, reason });
    const entries = [...worker.jobIds].flatMap((id) => this.active.get(id) ?? []);
    for (const { handles } of entries) for (const it of handles) this.#parts.sandboxes.kill(it);
    this.pools[worker.stage].respawn(worker);
    if (worker.stage === "init") this.#warm.lost();
    // Of several any may be the reason, so that none is charged with it.
    const error = new ServiceError(code, reason).toBody();
    const ending: JobEvent =
      entries.length === 1 ? { type: "stage_failed", error } : { type: "thread_lost" };
    this.#ticker.enqueue(() => {
      this.pauses.workerLost(worker);
      for (const entry of entries) {
        if (this.active.get(entry.job.id) !== entry) continue;
        for (const handle of entry.handles) this.#parking.end(handle);
        this.#leave(entry, ending, {}, null);
      }
    });
  }
}
