import type { Stage } from "../jobs/job.ts";
import type { FromWorker, ToWorker } from "./messages.ts";

/** The part of a Bun Worker that a pool uses. */
export interface WorkerThread {
  post(messages: ToWorker[]): void;
  /** Called once, before anything is posted. */
  listen(onEvents: (events: FromWorker[]) => void, onCrash: (reason: string) => void): void;
  terminate(): void;
}

export type SpawnWorker = (stage: Stage) => WorkerThread;

/** One thread of a pool and the jobs in its slots. */
export type PoolWorker = {
  readonly stage: Stage;
  thread: WorkerThread;
  readonly jobIds: Set<string>;
  /** Those that have given their slots back and whose records are still to come. */
  readonly recording: Set<string>;
  outbox: ToWorker[];
  /** Pings since its last sign of life. */
  unanswered: number;
  /** Whether it has given one since it was last asked to end a job. */
  heard: boolean;
};

type PoolOptions = {
  stage: Stage;
  threads: number;
  /** Jobs at once, over all threads of the pool. */
  slots: number;
  spawn: SpawnWorker;
  onEvents(events: FromWorker[]): void;
  onCrash(worker: PoolWorker, reason: string): void;
};

/** The threads of one stage. It knows who has room; what to start is the scheduler's choice. */
export class Pool {
  readonly stage: Stage;
  readonly workers: PoolWorker[] = [];
  readonly #options: PoolOptions;
  #terminated = false;

  constructor(options: PoolOptions) {
    this.stage = options.stage;
    this.#options = options;
    for (let i = 0; i < options.threads; i++) {
      const jobs = { jobIds: new Set<string>(), recording: new Set<string>() };
      const empty = { ...jobs, outbox: [] as ToWorker[], unanswered: 0, heard: true };
      const thread = options.spawn(options.stage);
      this.workers.push({ stage: options.stage, ...empty, thread });
    }
    for (const worker of this.workers) this.#listen(worker);
  }

  get slots(): number {
    return this.#options.slots;
  }

  /** As many as there are slots may write their records meanwhile; of more than that each keeps one. */
  freeSlots(): number {
    const { slots } = this.#options;
    let busy = 0;
    let recording = 0;
    for (const worker of this.workers) {
      busy += worker.jobIds.size;
      recording += worker.recording.size;
    }
    return slots - busy - Math.max(0, recording - slots);
  }

  /** Takes a slot in the thread with the fewest jobs. The message leaves with the next `flush`. */
  start(message: Extract<ToWorker, { type: "start" }>): PoolWorker {
    const chosen = this.idlest();
    chosen.jobIds.add(message.jobId);
    chosen.outbox.push(message);
    return chosen;
  }

  /** The thread with the fewest jobs. */
  idlest(): PoolWorker {
    let chosen = this.workers[0] as PoolWorker;
    for (const worker of this.workers) {
      if (worker.jobIds.size < chosen.jobIds.size) chosen = worker;
    }
    return chosen;
  }

  flush(): void {
    for (const worker of this.workers) {
      if (worker.outbox.length === 0) continue;
      worker.thread.post(worker.outbox);
      worker.outbox = [];
    }
  }

  /** Puts a fresh thread in the place of one that hangs or crashed. Its jobs are the caller's to settle. */
  respawn(worker: PoolWorker): void {
    worker.thread.terminate();
    worker.jobIds.clear();
    worker.recording.clear();
    worker.outbox = [];
    worker.unanswered = 0;
    worker.thread = this.#options.spawn(this.stage);
    this.#listen(worker);
  }

  terminate(): void {
    this.#terminated = true;
    for (const worker of this.workers) worker.thread.terminate();
  }

  #listen(worker: PoolWorker): void {
    const { thread } = worker;
    thread.listen(
      (events) => {
        worker.unanswered = 0;
        worker.heard = true;
        this.#options.onEvents(events.filter(({ type }) => type !== "pong"));
      },
      (reason) => {
        // A thread that was replaced or dismissed may still report its own end.
        if (worker.thread === thread && !this.#terminated) this.#options.onCrash(worker, reason);
      },
    );
  }
}
