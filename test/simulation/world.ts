import { existsSync, mkdtempSync, rmSync } from "node:fs";
import type { Stage } from "../../src/jobs/job.ts";
import type { StartStage } from "../../src/pipeline/messages.ts";
import type { Submission } from "../../src/pipeline/parts.ts";
import { recoverJobs } from "../../src/pipeline/recovery.ts";
import { Scheduler } from "../../src/pipeline/scheduler.ts";
import type { SandboxHandle } from "../../src/sandbox/sandbox.ts";
import { Store } from "../../src/store/store.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { fakeChooser } from "../support/fake-backends.ts";
import { unwatched } from "../support/fake-sandbox.ts";
import { FakeThread } from "../support/fake-thread.ts";
import { testDisk } from "../support/test-disk.ts";

const MAX_CRASHES = 1000;

/** A disk that is done in the next turn, so that a schedule is the same each time. */
const NEXT_TURN = testDisk((_fd, done) => void setImmediate(() => done(null)));

/** The service without HTTP: the real scheduler and SQLite, with threads, sandboxes and time that are played. */
export class World implements Disposable {
  readonly #folder = mkdtempSync(existsSync("/dev/shm") ? "/dev/shm/rt-" : "/var/tmp/rt-");
  readonly clock: { ms: number; nowMs(): number } = { ms: 100_000_000, nowMs: () => this.clock.ms };
  store: Store;
  scheduler: Scheduler;
  /** Sandboxes that somebody started and nobody has ended. */
  readonly alive = new Set<string>();
  readonly fatal: unknown[] = [];
  #threads: { stage: Stage; thread: FakeThread }[] = [];
  #timers = new Set<() => void>();
  #life = 0;

  constructor() {
    this.store = new Store(this.#folder, false, NEXT_TURN);
    this.scheduler = this.#start();
  }

  #start(): Scheduler {
    const life = ++this.#life;
    const pool = { threads: 2, slots: 4 };
    return new Scheduler({
      ...{ store: this.store, clock: this.clock, log: createLog("silent") },
      backends: fakeChooser(),
      sandboxes: {
        kill: ({ id }) => void this.alive.delete(id),
        end: async ({ id }) => void this.alive.delete(id),
        watch: unwatched,
      },
      isTight: () => false,
      imageOnNode: () => "/",
      spawn: (stage) => {
        const thread = new FakeThread();
        this.#threads.push({ stage, thread });
        return thread;
      },
      settings: {
        pools: { init: pool, run: pool, eval: pool },
        ...{
          evalSandboxes: 3,
          startsAtOnce: 3,
          maxSandboxesAhead: 4,
          imagesAtOnce: 2,
          warmSandboxes: 0,
        },
        ...{ maxQueuedJobs: 60, maxPausedAlive: 4, cancelGraceMs: 1000, carryLimitMs: 1_000_000 },
      },
      every: (_ms, work) => {
        this.#timers.add(work);
        return { [Symbol.dispose]: () => void this.#timers.delete(work) };
      },
      onFatal: (error) => {
        if (life === this.#life) this.fatal.push(error);
      },
    });
  }

  /**
   * The process dies between two commits, and another one takes over. Its sandboxes die with it. Its clock begins with
   * the system's, which may have been set by `jumpMs` meanwhile.
   */
  async kill(jumpMs: number): Promise<void> {
    this.#life++;
    this.clock.ms += jumpMs;
    this.#timers.clear();
    this.#threads = [];
    this.alive.clear();
    this.store[Symbol.dispose]();
    this.store = new Store(this.#folder, false, NEXT_TURN);
    recoverJobs(this.store, this.clock, MAX_CRASHES);
    this.scheduler = this.#start();
    await this.settle();
  }

  /** Time passes, and everything that looks at the clock does so. */
  async advance(ms: number): Promise<void> {
    this.clock.ms += ms;
    for (const work of [...this.#timers]) work();
    await this.settle();
  }

  async settle(): Promise<void> {
    for (let turn = 0; turn < 8; turn++) await new Promise((resolve) => setImmediate(resolve));
    if (this.fatal.length > 0) throw this.fatal[0];
  }

  /** What threads that live were given and have not answered. */
  outstanding(): { thread: FakeThread; start: StartStage }[] {
    return this.#threads.flatMap(({ thread }) => {
      if (thread.terminated) return [];
      return thread.starts().flatMap((start) => {
        const entry = this.scheduler.active.get(start.jobId);
        const current = entry?.job.attempt === start.attempt && entry.job.stage === start.stage;
        return current ? [{ thread, start }] : [];
      });
    });
  }

  threads(): FakeThread[] {
    return this.#threads.flatMap(({ thread }) => (thread.terminated ? [] : [thread]));
  }

  sandbox(id: string): SandboxHandle {
    this.alive.add(id);
    const holder = { holderPid: 1, holderStartTime: "1", starterPid: 1, starterStartTime: "1" };
    const control = { controlFd: -1, controlSocket: "none" };
    return { id, driver: "host", dir: `/none/${id}`, ...control, ...holder, isolation: null };
  }

  submit(submissions: Submission[]) {
    const submitted = this.scheduler.submit(submissions);
    return submitted.catch((error: { code?: string }) => {
      if (error.code === "queue_full") return null;
      throw error;
    });
  }

  [Symbol.dispose](): void {
    this.#life++;
    this.#timers.clear();
    this.store[Symbol.dispose]();
    rmSync(this.#folder, { recursive: true, force: true });
  }
}
