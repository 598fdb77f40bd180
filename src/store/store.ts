import type { Database } from "bun:sqlite";
import { join } from "node:path";
import { eq, sql } from "drizzle-orm";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import { isFinal, type Job } from "../jobs/job.ts";
import { BackendTable } from "./backend-table.ts";
import { BatchStore } from "./batch-store.ts";
import { CallbackTable } from "./callbacks.ts";
import { closeDatabase, DATABASE_FILE, LOG_FILE, openDatabase } from "./database.ts";
import { type Disk, DiskFile } from "./disk-file.ts";
import { GroupEventLog } from "./group-events.ts";
import { GroupRetention } from "./group-retention.ts";
import { GroupStore } from "./group-store.ts";
import { InstanceStore } from "./instance-store.ts";
import { JobCounts } from "./job-counts.ts";
import { JobQueue } from "./job-queue.ts";
import { type JobResult, JobTable, SELECT_JOB } from "./job-table.ts";
import { LeaseTable } from "./leases.ts";
import { Leftovers } from "./leftovers.ts";
import { type ListFilter, type ListPage, listJobs } from "./listing.ts";
import { LogFold } from "./log-fold.ts";
import { LogSync } from "./log-sync.ts";
import type { NewJobRow, NewRow } from "./new-jobs.ts";
import { PastTurnsTable } from "./past-turns.ts";
import { PausedTable } from "./paused-table.ts";
import { RemainsStore } from "./remains.ts";
import { Retention } from "./retention.ts";
import { type JobRow, jobs, trajectories, type WorkRow } from "./tables.ts";
import { WeightTable } from "./weight-table.ts";

/** So many rescores of one job are shown. */
const MAX_RESCORES = 1000;

/**
 * All that is durable. One connection, on the main thread; every method is synchronous, and writes happen
 * inside `transaction`. What is committed survives the process at once, and a power cut after `durable`.
 */
export class Store implements Disposable {
  readonly #raw: Database;
  readonly #db: BunSQLiteDatabase;
  readonly #statements;
  readonly #jobs: JobTable;
  readonly #files: { log: DiskFile; database: DiskFile };
  readonly #logSync: LogSync;
  readonly #logFold: LogFold;
  readonly queue: JobQueue;
  readonly leftovers: Leftovers;
  readonly groups: GroupStore;
  readonly batches: BatchStore;
  readonly instances: InstanceStore;
  readonly groupEvents: GroupEventLog;
  readonly callbacks: CallbackTable;
  readonly leases: LeaseTable;
  readonly paused: PausedTable;
  readonly pastTurns: PastTurnsTable;
  readonly backends: BackendTable;
  readonly weights: WeightTable;
  readonly retention: Retention;
  readonly remains: RemainsStore;
  readonly groupRetention: GroupRetention;
  /** How many jobs wait or work. */
  readonly counts: JobCounts;
  #finishedSeq: number;

  /** @param recover sets a damaged database aside instead of refusing it */
  constructor(dataDir: string, recover = false, disk?: Disk) {
    this.#raw = openDatabase(dataDir, recover);
    this.#files = {
      log: new DiskFile(join(dataDir, LOG_FILE), disk),
      database: new DiskFile(join(dataDir, DATABASE_FILE), disk),
    };
    this.#logSync = new LogSync(this.#raw, this.#files.log);
    this.#logFold = new LogFold(this.#raw, this.#files.log, this.#files.database);
    this.#db = drizzle(this.#raw);
    this.#statements = prepareStatements(this.#raw);
    this.#jobs = new JobTable(this.#raw);
    this.counts = new JobCounts(this.#raw);
    this.queue = new JobQueue(this.#raw, this.counts);
    this.leftovers = new Leftovers(this.#raw);
    this.groups = new GroupStore(this.#db);
    this.batches = new BatchStore(this.#db);
    this.instances = new InstanceStore(this.#db);
    this.groupEvents = new GroupEventLog(this.#raw);
    this.callbacks = new CallbackTable(this.#raw);
    this.leases = new LeaseTable(this.#raw);
    this.paused = new PausedTable(this.#raw);
    this.pastTurns = new PastTurnsTable(this.#raw);
    this.backends = new BackendTable(this.#db);
    this.weights = new WeightTable(this.#db);
    this.retention = new Retention(this.#raw);
    this.remains = new RemainsStore(this.#raw);
    this.groupRetention = new GroupRetention(this.#raw);
    const last = this.#db
      .select({ seq: sql<number>`coalesce(max(${jobs.finished_seq}), 0)` })
      .from(jobs)
      .get();
    this.#finishedSeq = last?.seq ?? 0;
  }

  /** The position behind which jobs that finish from now on will be. */
  get finishedCursor(): number {
    return this.#finishedSeq;
  }

  /** Runs `work` as one durable unit. An async `work` would commit at its first `await`, so it is a bug. */
  transaction<T>(work: () => T): T {
    this.#logFold.finish();
    const whole = this.#raw.transaction(() => {
      const result = work();
      if (result instanceof Promise) throw new Error("a transaction must not be async");
      return result;
    });
    try {
      return whole.immediate();
    } catch (error) {
      this.counts.rolledBack();
      throw error;
    }
  }

  /**
   * Resolves when all that is committed now would survive a power cut; null where it would already. Nobody outside
   * the service may be shown what was read here before.
   */
  durable(): Promise<void> | null {
    return this.#logSync.durable();
  }

  /** What a write that can wait is to wait for, if anything: a sync that is under way, or the fold of a long log. */
  settled(): Promise<void> | null {
    return this.#logSync.running ?? this.#logFold.begin();
  }

  /** Gives some pages of what was removed back to the file system. */
  shrink(): void {
    this.#logFold.finish();
    this.retention.shrink();
  }

  insertJob(job: Job, row: NewRow): number {
    return this.insertJobs([{ job, row }])[0] as number;
  }

  /** Returns their `seq`s, which follow each other. */
  insertJobs(news: NewJobRow[]): number[] {
    const seqs = this.#jobs.insert(news);
    for (const { job } of news) this.counts.inserted(job);
    return seqs;
  }

  /** @param from the job as it was */
  updateJob(
    seq: number,
    from: Pick<Job, "stage" | "state">,
    job: Job,
    result: JobResult = {},
  ): void {
    const finishedSeq = isFinal(job) ? ++this.#finishedSeq : null;
    this.#jobs.update(seq, from, job, result, finishedSeq);
    this.counts.changed(from, job);
    if (job.finishedMs !== null) this.callbacks.note(seq, job.finishedMs);
  }

  saveTrajectory(seq: number, attempt: number, record: string): void {
    const compressed = Buffer.from(Bun.zstdCompressSync(record));
    this.#statements.saveTrajectory.run(seq, attempt, compressed);
  }

  trajectory(seq: number): { attempt: number; record: string } | null {
    const row = this.#db.select().from(trajectories).where(eq(trajectories.job_seq, seq)).get();
    if (!row) return null;
    return { attempt: row.attempt, record: Bun.zstdDecompressSync(row.record).toString() };
  }

  jobById(id: string): JobRow | null {
    return this.#jobs.byId(id);
  }

  /** With its instance and options, which may be long. */
  workById(id: string): WorkRow | null {
    return this.#jobs.workById(id);
  }

  jobBySeq(seq: number): JobRow | null {
    return this.#jobs.bySeq(seq);
  }

  /** False also where there is none of that id. */
  isUnfinished(id: string): boolean {
    return this.#jobs.isUnfinished(id);
  }

  sampledTokens(id: string): number | null {
    return this.#jobs.sampledTokens(id);
  }

  /** The digest of what a job was submitted with; null where there is none of that id. */
  bodyOf(id: string): string | null {
    return this.#jobs.bodyOf(id);
  }

  /** The jobs that score its outcome again, the oldest first. */
  rescores(id: string): JobRow[] {
    return this.#statements.rescores.all(id, MAX_RESCORES);
  }

  list(filter: ListFilter): ListPage {
    return listJobs(this.#raw, filter);
  }

  [Symbol.dispose](): void {
    this.#logFold[Symbol.dispose]();
    this.#logSync[Symbol.dispose]();
    this.#files.log[Symbol.dispose]();
    closeDatabase(this.#raw);
    // Not before: closing any descriptor of it drops SQLite's lock.
    this.#files.database[Symbol.dispose]();
  }
}

const SAVE_TRAJECTORY = `
  INSERT INTO trajectories (job_seq, attempt, record) VALUES (?, ?, ?)
  ON CONFLICT (job_seq) DO UPDATE SET attempt = excluded.attempt, record = excluded.record`;

function prepareStatements(db: Database) {
  return {
    saveTrajectory: db.query<never, [number, number, Buffer]>(SAVE_TRAJECTORY),
    rescores: db.query<JobRow, [string, number]>(
      `${SELECT_JOB} WHERE rescore_of = (SELECT ?) ORDER BY seq LIMIT (SELECT ?)`,
    ),
  };
}
