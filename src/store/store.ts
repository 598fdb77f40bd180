import type { Database } from "bun:sqlite";
import { and, asc, eq, gt, inArray, isNotNull, lte, or, type SQL, sql } from "drizzle-orm";
import { type BunSQLiteDatabase, drizzle } from "drizzle-orm/bun-sqlite";
import type { SQLiteColumn } from "drizzle-orm/sqlite-core";
import type { Job, Stage, State } from "../jobs/job.ts";
import { isFinal } from "../jobs/job.ts";
import type { Verdict } from "../verifiers/verdict.ts";
import { BatchStore } from "./batch-store.ts";
import { closeDatabase, openDatabase } from "./database.ts";
import { GroupStore } from "./group-store.ts";
import { InstanceStore } from "./instance-store.ts";
import { toColumns } from "./rows.ts";
import { type BackendRow, backends, type JobRow, jobs, trajectories } from "./tables.ts";

/** What a stage leaves in the row besides the job's life. Absent: unchanged. */
export type JobResult = {
  backendId?: string;
  outcome?: string;
  isolation?: "A" | "B";
  sampledTokens?: number;
  verdict?: Verdict;
};

export type NewRow = {
  bodySha256: string;
  taskKind: string;
  usesSandbox: boolean;
  needsBackend: boolean;
  instance: string;
  options: string;
  /** Of a job that begins with EVAL: what another job's RUN left, and that job's id. */
  rescore?: { of: string; outcome: string };
  /** Where the job is a sample of a group. */
  member?: { groupSeq: number; sample: number };
};

/** Which waiting jobs may be claimed now. */
export type ClaimFilter = { stage: Stage; limit: number; sandbox: boolean; backend: boolean };

export type ListFilter = {
  states?: State[];
  limit: number;
  /** Jobs behind this position: of submission, or of finishing when `order` says so. */
  after: number;
  order: "submitted" | "finished";
};

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
  #finishedSeq: number;

  constructor(dataDir: string) {
    this.#raw = openDatabase(dataDir);
    this.#db = drizzle(this.#raw);
    this.#statements = prepareStatements(this.#db);
    this.groups = new GroupStore(this.#db);
    this.batches = new BatchStore(this.#db);
    this.instances = new InstanceStore(this.#db);
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
    return this.#raw
      .transaction(() => {
        const result = work();
        if (result instanceof Promise) throw new Error("a transaction must not be async");
        return result;
      })
      .immediate();
  }

  insertJob(job: Job, row: NewRow): number {
    const inserted = this.#statements.insert.get({
      ...toColumns(job),
      id: job.id,
      body_sha256: row.bodySha256,
      task_kind: row.taskKind,
      uses_sandbox: row.usesSandbox ? 1 : 0,
      needs_backend: row.needsBackend ? 1 : 0,
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
    }) as { seq: number };
    return inserted.seq;
  }

  updateJob(seq: number, job: Job, result: JobResult = {}): void {
    const finishedSeq = isFinal(job) ? ++this.#finishedSeq : null;
    const { backendId = null, outcome = null, isolation = null, verdict } = result;
    const sampledTokens = result.sampledTokens ?? null;
    this.#statements.update.run({
      ...toColumns(job),
      seq,
      finished_seq: finishedSeq,
      backend_id: backendId,
      outcome,
      isolation,
      sampled_tokens: sampledTokens,
      verdict: verdict ? JSON.stringify(verdict) : null,
      reward: verdict?.reward ?? null,
    });
    // What a former attempt recorded is not shown as if it belonged to the next one.
    if (job.state === "pending" && job.stage === "init") this.#statements.forget.run({ seq });
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
    const values = { job_seq: seq, attempt, record: compressed };
    this.#db
      .insert(trajectories)
      .values(values)
      .onConflictDoUpdate({ target: trajectories.job_seq, set: values })
      .run();
  }

  trajectory(seq: number): { attempt: number; record: string } | null {
    const row = this.#db.select().from(trajectories).where(eq(trajectories.job_seq, seq)).get();
    if (!row) return null;
    return { attempt: row.attempt, record: Bun.zstdDecompressSync(row.record).toString() };
  }

  jobById(id: string): JobRow | null {
    return this.#statements.byId.get({ id }) ?? null;
  }

  jobBySeq(seq: number): JobRow | null {
    return this.#db.select().from(jobs).where(eq(jobs.seq, seq)).get() ?? null;
  }

  claimable({ stage, limit, sandbox, backend }: ClaimFilter): JobRow[] {
    return this.#statements.claimable.all({
      stage,
      limit,
      sandbox: sandbox ? 1 : 0,
      backend: backend ? 1 : 0,
    });
  }

  pendingPastDeadline(nowMs: number): JobRow[] {
    return this.#db
      .select()
      .from(jobs)
      .where(and(eq(jobs.state, "pending"), lte(jobs.deadline_ms, nowMs)))
      .limit(1000)
      .all();
  }

  unfinished(): JobRow[] {
    return this.#db
      .select()
      .from(jobs)
      .where(inArray(jobs.state, ["pending", "active"]))
      .orderBy(asc(jobs.seq))
      .all();
  }

  list({ states, limit, after, order }: ListFilter): JobRow[] {
    const position = order === "finished" ? jobs.finished_seq : jobs.seq;
    const conditions: (SQL | undefined)[] = [gt(position, after)];
    if (order === "finished") conditions.push(isNotNull(jobs.finished_seq));
    if (states) conditions.push(inArray(jobs.state, states));
    return this.#db
      .select()
      .from(jobs)
      .where(and(...conditions))
      .orderBy(asc(position))
      .limit(limit)
      .all();
  }

  /** How many jobs wait or work, by stage. */
  unfinishedCounts(): { stage: Stage; state: State; count: number }[] {
    return this.#db
      .select({ stage: jobs.stage, state: jobs.state, count: sql<number>`count(*)` })
      .from(jobs)
      .where(or(eq(jobs.state, "pending"), eq(jobs.state, "active")))
      .groupBy(jobs.stage, jobs.state)
      .all();
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

  deleteBackend(id: string): void {
    this.#db.delete(backends).where(eq(backends.id, id)).run();
  }

  [Symbol.dispose](): void {
    closeDatabase(this.#raw);
  }
}

/** A new value, or the old one; but a job that is in INIT (again) has nothing of a former attempt. */
function keptUnlessInit(column: SQLiteColumn, name: string): SQL {
  const given = sql.placeholder(name);
  return sql`CASE WHEN ${sql.placeholder("stage")} = 'init' THEN NULL ELSE coalesce(${given}, ${column}) END`;
}

function prepareStatements(db: BunSQLiteDatabase) {
  const p = sql.placeholder;
  const life = {
    stage: p("stage"),
    state: p("state"),
    attempt: p("attempt"),
    crashes: p("crashes"),
    ending: p("ending"),
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
        instance: p("instance"),
        options: p("options"),
        limits: p("limits"),
        num_attempts: p("num_attempts"),
        eval_from_record: p("eval_from_record"),
        rescore_of: p("rescore_of"),
        outcome: p("outcome"),
        group_seq: p("group_seq"),
        sample: p("sample"),
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
        verdict: p("verdict"),
        reward: p("reward"),
      } as never)
      .where(eq(jobs.seq, p("seq")))
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
          sql`(${jobs.uses_sandbox} = 0 OR ${p("sandbox")})`,
          sql`(${jobs.needs_backend} = 0 OR ${p("backend")})`,
        ),
      )
      .orderBy(asc(jobs.seq))
      .limit(p("limit"))
      .prepare(),
  };
}
