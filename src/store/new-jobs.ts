import type { Database } from "bun:sqlite";
import type { Job } from "../jobs/job.ts";
import { writeLife } from "../jobs/life.ts";
import { queueKey } from "../jobs/queue-key.ts";

export type NewRow = {
  bodySha256: string;
  taskKind: string;
  /** Whether INIT makes a sandbox for the agent. */
  usesSandbox: boolean;
  /** Whether EVAL works in a fresh sandbox. */
  scoredInFresh?: boolean;
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

/** A job as `createJob` made it, and what was submitted with it. */
export type NewJobRow = { job: Job; row: NewRow };

type Value = string | number | null;

/** From so many rows on that differ in their ids only, one statement for all of them costs less than one each. */
const MIN_ALIKE = 8;

/** Writes the rows of new jobs. A batch's mostly differ in their ids and instances only. */
export class NewJobs {
  readonly #statements;

  constructor(db: Database) {
    this.#statements = prepare(db);
  }

  /** Returns their `seq`s, which follow each other. */
  insert(news: NewJobRow[]): number[] {
    const rows = news.map(columnsOf);
    const seqs: number[] = [];
    for (let start = 0; start < rows.length; ) {
      const first = rows[start] as Value[];
      let end = start + 1;
      while (end < rows.length && isAlike(first, rows[end] as Value[])) end++;
      if (end - start < MIN_ALIKE) {
        for (const row of rows.slice(start, end))
          seqs.push(rowid(this.#statements.one.run(...row)));
      } else {
        const ids = JSON.stringify(rows.slice(start, end).map(([id]) => id));
        const last = rowid(this.#statements.alike.run(ids, ...first.slice(1)));
        for (let seq = last - (end - start) + 1; seq <= last; seq++) seqs.push(seq);
      }
      start = end;
    }
    for (const [index, { row }] of news.entries()) this.#insertBody(seqs[index] as number, row);
    return seqs;
  }

  #insertBody(seq: number, row: NewRow): void {
    const { labels } = row;
    this.#statements.body.run(
      seq,
      row.bodySha256,
      row.instance,
      row.options,
      row.priority ?? 0,
      labels ? JSON.stringify(labels) : null,
      row.rescore?.outcome ?? null,
    );
    if (!labels) return;
    for (const [name, value] of Object.entries(labels)) {
      this.#statements.label.run(name, value, seq);
    }
  }
}

/** The values of `COLUMNS`, the id first. */
function columnsOf({ job, row }: NewJobRow): Value[] {
  const { priority = 0, leaseMs = null, member, rescore } = row;
  return [
    job.id,
    row.taskKind,
    row.usesSandbox ? 1 : 0,
    row.needsBackend ? 1 : 0,
    row.image,
    evalNeeds(job, row),
    row.client ?? "",
    queueKey(job.createdMs, priority),
    job.stage,
    job.createdMs,
    job.deadlineMs,
    writeLife(job),
    member?.groupSeq ?? null,
    member?.sample ?? null,
    rescore?.of ?? null,
    leaseMs,
    leaseMs === null ? null : job.createdMs + leaseMs,
    row.callbackUrl ?? null,
  ];
}

function evalNeeds({ evalFromRecord }: Job, { scoredInFresh }: NewRow): number {
  if (!evalFromRecord) return 0;
  return scoredInFresh ? 2 : 1;
}

function isAlike(a: Value[], b: Value[]): boolean {
  for (let index = 1; index < a.length; index++) if (a[index] !== b[index]) return false;
  return true;
}

function rowid({ lastInsertRowid }: { lastInsertRowid: number | bigint }): number {
  return Number(lastInsertRowid);
}

const COLUMNS = `INSERT INTO jobs (id, task_kind, uses_sandbox, needs_backend, image, eval_from_record,
  client, queue_key, stage, created_ms, since_ms, deadline_ms, life, group_seq, sample, rescore_of,
  lease_ms, lease_until_ms, callback_url, state, attempt, crashes)`;
const VALUES = `?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18,
  'pending', 1, 0`;

function prepare(db: Database) {
  const write = (sql: string) => db.query<never, Value[]>(sql);
  return {
    one: write(`${COLUMNS} VALUES (?1, ${VALUES})`),
    // An array's elements come in their order.
    alike: write(`${COLUMNS} SELECT value, ${VALUES} FROM json_each(?1)`),
    body: write("INSERT INTO job_bodies VALUES (?, ?, ?, ?, ?, ?, ?)"),
    label: write("INSERT INTO labels (name, value, job_seq) VALUES (?, ?, ?)"),
  };
}
