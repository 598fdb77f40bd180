import type { Job, Stage } from "../jobs/job.ts";
import type { JobRow } from "../store/tables.ts";
import { Batches } from "./batches.ts";
import { EventFeed } from "./event-feed.ts";
import { Groups } from "./groups.ts";
import { Heartbeat } from "./heartbeat.ts";
import { ImageGate } from "./image-gate.ts";
import { Intake } from "./intake.ts";
import { JobChanges } from "./job-changes.ts";
import { Ladder } from "./ladder.ts";
import { Parking } from "./parking.ts";
import type { Accepted, ActiveJob, SchedulerParts, Submission, Submitted } from "./parts.ts";
import { Pauses } from "./pauses.ts";
import { Pool, type PoolWorker } from "./pool.ts";
import { Slots } from "./slots.ts";
import { Suspects } from "./suspects.ts";
import { Ticker } from "./ticker.ts";
import { Waiters } from "./waiters.ts";
import { WarmPool } from "./warm-pool.ts";
import { WorkerEvents } from "./worker-events.ts";

/** How often a drain looks whether the active jobs are over. */
const DRAIN_POLL_MS = 5;
const DEFAULT_STALL_MS = 60_000;
const DEFAULT_MAX_CRASHES = 2;

/**
 * The control plane's heart: it puts the parts together and takes what clients ask (submits, cancels, leases, the drain).
 * What threads say is `worker-events.ts`, what becomes of jobs `job-changes.ts`, and who gets a free slot `slots.ts`.
 * All that comes at about the same moment is one transaction, and only after its commit do workers and clients hear of it.
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
  readonly #changes: JobChanges;
  readonly #events: WorkerEvents;
  #draining = false;

  constructor(parts: SchedulerParts) {
    this.#parts = parts;
    const { store, sandboxes, settings, spawn, imageOnNode, onFatal } = parts;
    const pool = (stage: Stage) =>
      new Pool({
        stage,
        ...settings.pools[stage],
        spawn,
        onEvents: (events) => this.#events.receive(events),
        onCrash: (worker, reason) => this.#events.lost(worker, "worker_crashed", reason),
      });
    this.pools = { init: pool("init"), run: pool("run"), eval: pool("eval") };
    this.#intake = new Intake({
      ...parts,
      closed: () => this.#draining,
      operate: (work) => this.#ticker.operate(work),
      joined: (count) => this.#ticker.joined(count),
      tell: (job) => this.#tell(job),
    });
    this.#parking = new Parking(sandboxes, (jobId, error) =>
      this.#ticker.enqueue(() => this.#changes.sandboxLost(jobId, error)),
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
    this.#suspects = new Suspects(maxCrashes, store.leftovers.inCrashes(Math.max(1, maxCrashes)));
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
          for (const id of ids) this.#changes.requestEnd(id, "deadline");
        }),
      endUnleased: (ids) => this.cancelAll(ids, "its lease was not renewed").catch(onFatal),
      releaseDelayed: () =>
        this.#ticker.enqueue(() => store.queue.releaseDelayed(parts.clock.nowMs())),
      replace: (worker) => {
        if (worker.heard) {
          this.#events.lost(worker, "worker_unresponsive", "no end was confirmed in time");
        } else this.#events.blocked(worker, "no answer when it was asked to end a job");
      },
    });
    const { stallMs = DEFAULT_STALL_MS } = settings;
    const silence = `no sign of life for ${stallMs} ms`;
    const onStuck = (worker: PoolWorker) => this.#events.blocked(worker, silence);
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
    parts.backends.connect((message) => this.#events.tell(message), wake);
    this.groups = new Groups({
      ...parts,
      feed: this.feed,
      operate: (work) => this.#ticker.operate(work),
      afterCommit: (effect) => this.#ticker.afterCommit(effect),
      expectRoom: (count) => this.#intake.expectRoom(count),
      insertJob: (submission) => this.#intake.insert(submission),
      pauses: this.pauses,
      endJob: (id) => this.#changes.requestEnd(id, "cancel"),
    });
    const closed = () => this.#draining;
    const own = { active: this.active, pools: this.pools, pauses: this.pauses };
    const held = { parking: this.#parking, images: this.#images };
    this.#changes = new JobChanges({
      ...{ ...parts, ...own, ...held, closed },
      ...{ slots: this.#slots, suspects: this.#suspects, ladder: this.#ladder },
      ...{ groups: this.groups, waiters: this.waiters },
      tell: (job) => this.#tell(job),
      afterCommit: (effect) => this.#ticker.afterCommit(effect),
    });
    this.#events = new WorkerEvents({
      ...{ ...parts, ...own, ...held, closed },
      ...{ ticker: this.#ticker, changes: this.#changes, warm: this.#warm },
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

  /** Answers of attempts that were over. */
  get staleAnswers(): number {
    return this.#events.staleAnswers;
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
      this.#changes.requestEnd(id, "cancel");
      return this.#parts.store.jobById(id);
    });
  }

  /** The same for many, in one durable step. */
  cancelAll(ids: string[], reason?: string): Promise<void> {
    return this.#ticker.operate(() => {
      for (const id of ids) this.#changes.requestEnd(id, "cancel", reason);
    });
  }

  /** Renews leases; resolves with the ids that had one to renew. */
  renew(ids: string[]): Promise<string[]> {
    return this.#ticker.operate(() => {
      const nowMs = this.#parts.clock.nowMs();
      return ids.filter((id) => this.#parts.store.leases.renew(id, nowMs));
    });
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
    const handedBack = this.active.size + this.#events.cutEarly;
    await this.#ticker.operate(() => {
      for (const id of this.active.keys()) this.#changes.requestEnd(id, "shutdown");
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

  #tell(job: Job): void {
    this.#ticker.afterCommit(() => this.feed.publish(job));
  }
}
