import type { Database } from "bun:sqlite";
import { join } from "node:path";
import { and, asc, eq, gt, isNotNull, isNull, lte, sql } from "drizzle-orm";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import type { Job, Stage } from "../jobs/job.ts";
import { isFinal } from "../jobs/job.ts";
import { BatchStore } from "./batch-store.ts";
import { CallbackTable } from "./callbacks.ts";
import { closeDatabase, DATABASE_FILE, LOG_FILE, openDatabase } from "./database.ts";
import { type Disk, DiskFile } from "./disk-file.ts";
import { GroupEventLog } from "./group-events.ts";
import { GroupRetention } from "./group-retention.ts";
import { GroupStore } from "./group-store.ts";
import { InstanceStore } from "./instance-store.ts";
import { JobCounts } from "./job-counts.ts";
import { type JobResult, JobTable, SELECT_JOB, SELECT_WORK } from "./job-table.ts";
import { LeaseTable } from "./leases.ts";
import { type ListFilter, type ListPage, listJobs } from "./listing.ts";
import { LogFold } from "./log-fold.ts";
import { LogSync } from "./log-sync.ts";
import type { NewJobRow, NewRow } from "./new-jobs.ts";
import { PastTurnsTable } from "./past-turns.ts";
import { PausedTable } from "./paused-table.ts";
import { Retention } from "./retention.ts";
import {
  type BackendRow,
  backends,
  type JobHead,
  type JobRow,
  jobs,
  trajectories,
  type WorkRow,
  weightPause,
  weightVersions,
} from "./tables.ts";

/** Which waiting jobs of a client may be claimed now. */
export type ClaimFilter = {
  stage: Stage;
  client: string;
  limit: number;
  sandbox: boolean;
  backend: boolean;
  /** Images whose jobs are left out where they would start a sandbox; empty: the default one. */
  barred: string[];
};

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
  readonly groups: GroupStore;
  readonly batches: BatchStore;
  readonly instances: InstanceStore;
  readonly groupEvents: GroupEventLog;
  readonly callbacks: CallbackTable;
  readonly leases: LeaseTable;
  readonly paused: PausedTable;
  readonly pastTurns: PastTurnsTable;
  readonly retention: Retention;
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
    this.groups = new GroupStore(this.#db);
    this.batches = new BatchStore(this.#db);
    this.instances = new InstanceStore(this.#db);
    this.groupEvents = new GroupEventLog(this.#raw);
    this.callbacks = new CallbackTable(this.#raw);
    this.leases = new LeaseTable(this.#raw);
    this.paused = new PausedTable(this.#raw);
    this.pastTurns = new PastTurnsTable(this.#raw);
    this.retention = new Retention(this.#raw);
    this.groupRetention = new GroupRetention(this.#raw);
    this.counts = new JobCounts(this.#raw);
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

  /** After the clock was set back: no job that is left lasts longer than its limit from now. */
  clampDeadlines(nowMs: number): void {
    const latest = sql`min(${jobs.deadline_ms}, ${nowMs} + (${jobs.life} ->> '$.limits.totalMs'))`;
    const ahead = and(isNull(jobs.finished_ms), gt(jobs.created_ms, nowMs));
    this.#db.update(jobs).set({ deadline_ms: latest }).where(ahead).run();
  }

  /** Makes the delayed jobs claimable whose time has come. */
  releaseDelayed(nowMs: number): void {
    const due = and(isNotNull(jobs.not_before_ms), lte(jobs.not_before_ms, nowMs));
    this.#db.update(jobs).set({ not_before_ms: null }).where(due).run();
  }

  /** When the next delayed job is due; null where none is delayed. */
  nextDueMs(): number | null {
    return this.#statements.nextDue.get()?.due ?? null;
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

  /** Clients with jobs that wait for a stage, at most a thousand. */
  clientsWaiting(stage: Stage): string[] {
    if (this.counts.waiting(stage) === 0) return [];
    return this.#statements.clientsWaiting.all(stage).map(({ client }) => client);
  }

  claimable({ stage, client, limit, sandbox, backend, barred }: ClaimFilter): WorkRow[] {
    const room = [sandbox ? 1 : 0, backend ? 1 : 0] as const;
    return this.#statements.claimable.all(stage, client, limit, ...room, JSON.stringify(barred));
  }

  /** Ids of waiting jobs whose time is over, at most a thousand. */
  pendingPastDeadline(nowMs: number): string[] {
    return this.#statements.pastDeadline.all(nowMs).map(({ id }) => id);
  }

  /** Unfinished jobs that have been active in so many crashes. */
  inCrashes(least: number): { id: string; crashes: number }[] {
    return this.#statements.inCrashes.all(least);
  }

  /** Unfinished jobs behind a position that can't stay as a service left them that died; at most 500. */
  recoverable(after: number): JobHead[] {
    return this.#statements.recoverable.all(after);
  }

  list(filter: ListFilter): ListPage {
    return listJobs(this.#raw, filter);
  }

  backends(): BackendRow[] {
    return this.#db.select().from(backends).orderBy(asc(backends.added_ms)).all();
  }

  saveBackend(row: BackendRow): void {
    this.#db
      .insert(backends)
      .values(row)
      .onConflictDoUpdate({ target: backends.id, set: row })
      .run();
  }

  /** What another probe of a backend found. */
  saveProfile(id: string, profile: object | null): void {
    const text = profile === null ? null : JSON.stringify(profile);
    this.#db.update(backends).set({ profile: text }).where(eq(backends.id, id)).run();
  }

  saveLeaving(id: string, leaving: BackendRow["leaving"]): void {
    this.#db.update(backends).set({ leaving }).where(eq(backends.id, id)).run();
  }

  /** Oldest first. */
  weightVersions(): { version: string; announced_ms: number }[] {
    return this.#db.select().from(weightVersions).orderBy(asc(weightVersions.ordinal)).all();
  }

  addWeightVersion(row: { version: string; announced_ms: number }): void {
    this.#db.insert(weightVersions).values(row).run();
  }

  weightPause(): "drain" | "abort" | "keep" | null {
    return this.#db.select().from(weightPause).get()?.mode ?? null;
  }

  setWeightPause(mode: "drain" | "abort" | "keep" | null): void {
    this.#db.delete(weightPause).run();
    if (mode !== null) this.#db.insert(weightPause).values({ id: 1, mode }).run();
  }

  deleteBackend(id: string): void {
    this.#db.delete(backends).where(eq(backends.id, id)).run();
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

/** Steps from one client to the next on the index of claimable jobs, whatever number of jobs each has. */
const CLIENTS_WAITING = `
  WITH RECURSIVE waiting (client) AS (
    SELECT min(client) FROM jobs
      WHERE stage = (SELECT ?1) AND state = 'pending' AND not_before_ms IS NULL
    UNION ALL
    SELECT (SELECT min(client) FROM jobs WHERE stage = (SELECT ?1) AND state = 'pending'
      AND not_before_ms IS NULL AND client > waiting.client)
    FROM waiting WHERE client IS NOT NULL
  )
  SELECT client FROM waiting WHERE client IS NOT NULL LIMIT 1000`;

/**
 * Told apart here and not by reading them all: a job that waits for the stage which begins an attempt has lost
 * nothing, and there may be a hundred thousand.
 */
const RECOVERABLE = `
  SELECT * FROM jobs INDEXED BY jobs_unfinished
  WHERE finished_ms IS NULL AND seq > (SELECT ?)
    AND NOT (state = 'pending' AND not_before_ms IS NULL AND crashes = 0 AND ending IS NULL
      AND stage = iif(stage = 'eval' AND eval_from_record, 'eval', 'init'))
  ORDER BY seq LIMIT 500`;

/** Waiting jobs of a client that may start, the first to go first; `?4` and `?5` say what there is room for. */
const CLAIMABLE = `
  ${SELECT_WORK}
  WHERE state = 'pending' AND not_before_ms IS NULL AND stage = (SELECT ?1) AND client = (SELECT ?2)
    AND (CASE ?1 WHEN 'init' THEN uses_sandbox = 0 WHEN 'eval' THEN eval_from_record < 2 ELSE 1 END
      OR (?4 AND coalesce(image, '') NOT IN (SELECT value FROM json_each(?6))))
    AND (needs_backend = 0 OR ?5)
  ORDER BY queue_key, seq LIMIT (SELECT ?3)`;

const PAST_DEADLINE = `
  SELECT id FROM jobs INDEXED BY jobs_deadline
  WHERE finished_ms IS NULL AND deadline_ms <= ? AND state = 'pending' LIMIT 1000`;

const SAVE_TRAJECTORY = `
  INSERT INTO trajectories (job_seq, attempt, record) VALUES (?, ?, ?)
  ON CONFLICT (job_seq) DO UPDATE SET attempt = excluded.attempt, record = excluded.record`;

function prepareStatements(db: Database) {
  return {
    saveTrajectory: db.query<never, [number, number, Buffer]>(SAVE_TRAJECTORY),
    nextDue: db.query<{ due: number | null }, []>(
      "SELECT min(not_before_ms) AS due FROM jobs WHERE not_before_ms IS NOT NULL",
    ),
    pastDeadline: db.query<{ id: string }, [number]>(PAST_DEADLINE),
    inCrashes: db.query<{ id: string; crashes: number }, [number]>(
      "SELECT id, crashes FROM jobs INDEXED BY jobs_unfinished WHERE finished_ms IS NULL AND crashes >= (SELECT ?)",
    ),
    claimable: db.query<WorkRow, [Stage, string, number, number, number, string]>(CLAIMABLE),
    clientsWaiting: db.query<{ client: string }, [Stage]>(CLIENTS_WAITING),
    recoverable: db.query<JobHead, [number]>(RECOVERABLE),
    rescores: db.query<JobRow, [string, number]>(
      `${SELECT_JOB} WHERE rescore_of = (SELECT ?) ORDER BY seq LIMIT (SELECT ?)`,
    ),
  };
}
