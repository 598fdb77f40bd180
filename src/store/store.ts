import type { Database } from "bun:sqlite";
import { and, asc, eq, gt, isNotNull, isNull, lte, type SQL, sql } from "drizzle-orm";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import type { Job, Stage } from "../jobs/job.ts";
import { isFinal } from "../jobs/job.ts";
import { queueKey } from "../jobs/queue-key.ts";
import type { Verdict } from "../verifiers/verdict.ts";
import { BatchStore } from "./batch-store.ts";
import { CallbackTable } from "./callbacks.ts";
import { closeDatabase, openDatabase } from "./database.ts";
import { GroupEventLog } from "./group-events.ts";
import { GroupStore } from "./group-store.ts";
import { InstanceStore } from "./instance-store.ts";
import { JobCounts } from "./job-counts.ts";
import { LeaseTable } from "./leases.ts";
import { type ListFilter, type ListPage, listJobs } from "./listing.ts";
import { PausedTable } from "./paused-table.ts";
import { Retention } from "./retention.ts";
import { toColumns } from "./rows.ts";
import {
  type BackendRow,
  backends,
  type JobRow,
  jobs,
  labels,
  trajectories,
  weightPause,
  weightVersions,
} from "./tables.ts";

/** What a stage leaves in the row besides the job's life. Absent: unchanged. */
export type JobResult = {
  backendId?: string;
  outcome?: string;
  isolation?: "A" | "B";
  sampledTokens?: number;
  /** The highest of all stages is kept. */
  sandboxPeak?: { memoryBytes: number; processes: number };
  verdict?: Verdict;
};

export type NewRow = {
  bodySha256: string;
  taskKind: string;
  usesSandbox: boolean;
  needsBackend: boolean;
  /** The image that its sandbox is made from; null: the service's default. */
  image: string | null;
  instance: string;
  options: string;
  /** Of a job that begins with EVAL: what another job's RUN left, and that job's id. */
  rescore?: { of: string; outcome: string };
  /** Where the job is a sample of a group. */
  member?: { groupSeq: number; sample: number };
  /** Who submitted it; the service's own work has none. */
  client?: string;
  priority?: number;
  labels?: Record<string, string>;
  /** How long its client may be silent before it is cancelled. Units: milliseconds. */
  leaseMs?: number;
  callbackUrl?: string;
};

/** Which waiting jobs of a client may be claimed now. */
export type ClaimFilter = {
  stage: Stage;
  client: string;
  limit: number;
  sandbox: boolean;
  backend: boolean;
  /** Images whose jobs with a sandbox are left out; empty: the default one. */
  barred: string[];
};

/** So many rescores of one job are shown. */
const MAX_RESCORES = 1000;

/**
 * All that is durable. One connection, on the main thread; every method is synchronous, and writes happen
 * inside `transaction`.
 */
export class Store implements Disposable {
  readonly #raw: Database;
  readonly #db: BunSQLiteDatabase;
  readonly #statements;
  readonly groups: GroupStore;
  readonly batches: BatchStore;
  readonly instances: InstanceStore;
  readonly groupEvents: GroupEventLog;
  readonly #clientsWaiting;
  readonly callbacks: CallbackTable;
  readonly leases: LeaseTable;
  readonly paused: PausedTable;
  readonly retention: Retention;
  /** How many jobs wait or work. */
  readonly counts: JobCounts;
  readonly #recoverable;
  #finishedSeq: number;

  /** @param recover sets a damaged database aside instead of refusing it */
  constructor(dataDir: string, recover = false) {
    this.#raw = openDatabase(dataDir, recover);
    this.#db = drizzle(this.#raw);
    this.#statements = prepareStatements(this.#db);
    this.groups = new GroupStore(this.#db);
    this.batches = new BatchStore(this.#db);
    this.instances = new InstanceStore(this.#db);
    this.groupEvents = new GroupEventLog(this.#raw);
    this.#clientsWaiting = this.#raw.query<{ client: string }, [string]>(CLIENTS_WAITING);
    this.callbacks = new CallbackTable(this.#raw);
    this.leases = new LeaseTable(this.#raw);
    this.paused = new PausedTable(this.#raw);
    this.retention = new Retention(this.#raw);
    this.counts = new JobCounts(this.#raw);
    this.#recoverable = this.#raw.query<JobRow, [number]>(RECOVERABLE);
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

  insertJob(job: Job, row: NewRow): number {
    const inserted = this.#statements.insert.get({
      ...toColumns(job),
      id: job.id,
      body_sha256: row.bodySha256,
      task_kind: row.taskKind,
      uses_sandbox: row.usesSandbox ? 1 : 0,
      needs_backend: row.needsBackend ? 1 : 0,
      image: row.image,
      instance: row.instance,
      options: row.options,
      limits: JSON.stringify(job.limits),
      num_attempts: job.numAttempts,
      eval_from_record: job.evalFromRecord ? 1 : 0,
      rescore_of: row.rescore?.of ?? null,
      outcome: row.rescore?.outcome ?? null,
      group_seq: row.member?.groupSeq ?? null,
      sample: row.member?.sample ?? null,
      created_ms: job.createdMs,
      deadline_ms: job.deadlineMs,
      client: row.client ?? "",
      priority: row.priority ?? 0,
      queue_key: queueKey(job.createdMs, row.priority ?? 0),
      labels: row.labels ? JSON.stringify(row.labels) : null,
      lease_ms: row.leaseMs ?? null,
      lease_until_ms: row.leaseMs === undefined ? null : job.createdMs + row.leaseMs,
      callback_url: row.callbackUrl ?? null,
    }) as { seq: number };
    this.counts.inserted(job);
    const job_seq = inserted.seq;
    for (const [name, value] of Object.entries(row.labels ?? {})) {
      this.#statements.label.run({ name, value, job_seq });
    }
    return job_seq;
  }

  updateJob(seq: number, job: Job, result: JobResult = {}): void {
    const finishedSeq = isFinal(job) ? ++this.#finishedSeq : null;
    const { backendId = null, outcome = null, isolation = null, verdict } = result;
    const sampledTokens = result.sampledTokens ?? null;
    this.counts.changing(seq, job);
    this.#statements.update.run({
      ...toColumns(job),
      seq,
      finished_seq: finishedSeq,
      backend_id: backendId,
      outcome,
      isolation,
      sampled_tokens: sampledTokens,
      peak_memory_bytes: result.sandboxPeak?.memoryBytes ?? null,
      peak_processes: result.sandboxPeak?.processes ?? null,
      verdict: verdict ? JSON.stringify(verdict) : null,
      reward: verdict?.reward ?? null,
    });
    if (job.finishedMs !== null) this.callbacks.note(seq, job.finishedMs);
    // What a former attempt recorded is not shown as if it belonged to the next one.
    if (job.state === "pending" && job.stage === "init") this.#statements.forget.run({ seq });
  }

  /** After the clock was set back: no job that is left lasts longer than its limit from now. */
  clampDeadlines(nowMs: number): void {
    const latest = sql`min(${jobs.deadline_ms}, ${nowMs} + json_extract(${jobs.limits}, '$.totalMs'))`;
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
    this.#statements.saveTrajectory.run({ job_seq: seq, attempt, record: compressed });
  }

  trajectory(seq: number): { attempt: number; record: string } | null {
    const row = this.#db.select().from(trajectories).where(eq(trajectories.job_seq, seq)).get();
    if (!row) return null;
    return { attempt: row.attempt, record: Bun.zstdDecompressSync(row.record).toString() };
  }

  jobById(id: string): JobRow | null {
    return this.#statements.byId.get({ id }) ?? null;
  }

  /** The jobs that score its outcome again, the oldest first. */
  rescores(id: string): JobRow[] {
    return this.#db
      .select()
      .from(jobs)
      .where(eq(jobs.rescore_of, id))
      .orderBy(asc(jobs.seq))
      .limit(MAX_RESCORES)
      .all();
  }

  jobBySeq(seq: number): JobRow | null {
    return this.#statements.bySeq.get({ seq }) ?? null;
  }

  /** Clients with jobs that wait for a stage, at most a thousand. */
  clientsWaiting(stage: Stage): string[] {
    return this.#clientsWaiting.all(stage).map(({ client }) => client);
  }

  claimable({ stage, client, limit, sandbox, backend, barred }: ClaimFilter): JobRow[] {
    return this.#statements.claimable.all({
      stage,
      client,
      limit,
      sandbox: sandbox ? 1 : 0,
      backend: backend ? 1 : 0,
      barred: JSON.stringify(barred),
    });
  }

  pendingPastDeadline(nowMs: number): JobRow[] {
    return this.#statements.pendingPastDeadline.all({ now_ms: nowMs });
  }

  /** Unfinished jobs behind a position that can't stay as a service left them that died; at most 500. */
  recoverable(after: number): JobRow[] {
    return this.#recoverable.all(after);
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
    closeDatabase(this.#raw);
  }
}

/** Steps from one client to the next on the index of claimable jobs, whatever number of jobs each has. */
const CLIENTS_WAITING = `
  WITH RECURSIVE waiting (client) AS (
    SELECT min(client) FROM jobs
      WHERE stage = ?1 AND state = 'pending' AND not_before_ms IS NULL
    UNION ALL
    SELECT (SELECT min(client) FROM jobs WHERE stage = ?1 AND state = 'pending'
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
  WHERE finished_ms IS NULL AND seq > ?
    AND NOT (state = 'pending' AND not_before_ms IS NULL AND crashes = 0 AND ending IS NULL
      AND stage = iif(stage = 'eval' AND eval_from_record, 'eval', 'init'))
  ORDER BY seq LIMIT 500`;

/** A new value, or the old one; but a job that is in INIT (again) has nothing of a former attempt. */
function keptUnlessInit(column: SQLiteColumn, name: string): SQL {
  const given = sql.placeholder(name);
  return sql`CASE WHEN ${sql.placeholder("stage")} = 'init' THEN NULL ELSE coalesce(${given}, ${column}) END`;
}

/** The given value where it is more than the known one. */
function highest(column: SQLiteColumn, name: string): SQL {
  const given = sql.placeholder(name);
  return sql`nullif(max(coalesce(${given}, -1), coalesce(${column}, -1)), -1)`;
}

function prepareStatements(db: BunSQLiteDatabase) {
  const p = sql.placeholder;
  const life = {
    stage: p("stage"),
    state: p("state"),
    attempt: p("attempt"),
    crashes: p("crashes"),
    ending: p("ending"),
    ending_reason: p("ending_reason"),
    since_ms: p("since_ms"),
    stage_deadline_ms: p("stage_deadline_ms"),
    init_queued_ms: p("init_queued_ms"),
    init_active_ms: p("init_active_ms"),
    run_queued_ms: p("run_queued_ms"),
    run_active_ms: p("run_active_ms"),
    eval_queued_ms: p("eval_queued_ms"),
    eval_active_ms: p("eval_active_ms"),
    error: p("error"),
    finished_ms: p("finished_ms"),
    failures: p("failures"),
    not_before_ms: p("not_before_ms"),
    visits: p("visits"),
  };
  return {
    insert: db
      .insert(jobs)
      .values({
        ...life,
        id: p("id"),
        body_sha256: p("body_sha256"),
        task_kind: p("task_kind"),
        uses_sandbox: p("uses_sandbox"),
        needs_backend: p("needs_backend"),
        image: p("image"),
        instance: p("instance"),
        options: p("options"),
        limits: p("limits"),
        num_attempts: p("num_attempts"),
        eval_from_record: p("eval_from_record"),
        rescore_of: p("rescore_of"),
        outcome: p("outcome"),
        group_seq: p("group_seq"),
        sample: p("sample"),
        client: p("client"),
        priority: p("priority"),
        queue_key: p("queue_key"),
        labels: p("labels"),
        lease_ms: p("lease_ms"),
        lease_until_ms: p("lease_until_ms"),
        callback_url: p("callback_url"),
        created_ms: p("created_ms"),
        deadline_ms: p("deadline_ms"),
      })
      .returning({ seq: jobs.seq })
      .prepare(),
    update: db
      .update(jobs)
      .set({
        ...life,
        finished_seq: p("finished_seq"),
        backend_id: keptUnlessInit(jobs.backend_id, "backend_id"),
        outcome: keptUnlessInit(jobs.outcome, "outcome"),
        isolation: keptUnlessInit(jobs.isolation, "isolation"),
        sampled_tokens: keptUnlessInit(jobs.sampled_tokens, "sampled_tokens"),
        peak_memory_bytes: highest(jobs.peak_memory_bytes, "peak_memory_bytes"),
        peak_processes: highest(jobs.peak_processes, "peak_processes"),
        verdict: p("verdict"),
        reward: p("reward"),
      } as never)
      .where(eq(jobs.seq, p("seq")))
      .prepare(),
    label: db
      .insert(labels)
      .values({ name: p("name"), value: p("value"), job_seq: p("job_seq") })
      .prepare(),
    saveTrajectory: db
      .insert(trajectories)
      .values({ job_seq: p("job_seq"), attempt: p("attempt"), record: p("record") })
      .onConflictDoUpdate({
        target: trajectories.job_seq,
        set: { attempt: sql`excluded.attempt`, record: sql`excluded.record` },
      })
      .prepare(),
    forget: db
      .delete(trajectories)
      .where(eq(trajectories.job_seq, p("seq")))
      .prepare(),
    nextDue: db
      .select({ due: sql<number | null>`min(${jobs.not_before_ms})` })
      .from(jobs)
      .where(isNotNull(jobs.not_before_ms))
      .prepare(),
    pendingPastDeadline: db
      .select()
      .from(jobs)
      .where(
        and(
          isNull(jobs.finished_ms),
          eq(jobs.state, "pending"),
          lte(jobs.deadline_ms, p("now_ms")),
        ),
      )
      .limit(1000)
      .prepare(),
    bySeq: db
      .select()
      .from(jobs)
      .where(eq(jobs.seq, p("seq")))
      .prepare(),
    byId: db
      .select()
      .from(jobs)
      .where(eq(jobs.id, p("id")))
      .prepare(),
    claimable: db
      .select()
      .from(jobs)
      .where(
        and(
          sql`${jobs.state} = 'pending' AND ${jobs.not_before_ms} IS NULL`,
          eq(jobs.stage, p("stage")),
          eq(jobs.client, p("client")),
          sql`(${jobs.uses_sandbox} = 0 OR ${p("sandbox")})`,
          sql`(${jobs.uses_sandbox} = 0 OR coalesce(${jobs.image}, '') NOT IN (SELECT value FROM json_each(${p("barred")})))`,
          sql`(${jobs.needs_backend} = 0 OR ${p("backend")})`,
        ),
      )
      .orderBy(asc(jobs.queue_key), asc(jobs.seq))
      .limit(p("limit"))
      .prepare(),
  };
}
