import type { Database } from "bun:sqlite";
import { SELECT_JOB } from "./job-table.ts";
import type { JobRow } from "./tables.ts";

/** A finished job whose client has yet to be told. `attempts` counts those that failed. */
export type DueCallback = { seq: number; url: string; attempts: number };

/** The messages that are still to be delivered, one for each finished job that asked for it. */
export class CallbackTable {
  readonly #db: Database;
  readonly #note;

  constructor(db: Database) {
    this.#db = db;
    this.#note = db.query<never, [number, number]>(
      `INSERT INTO callbacks (job_seq, attempts, due_ms)
       SELECT seq, 0, ? FROM jobs WHERE seq = ? AND callback_url IS NOT NULL`,
    );
  }

  /** Notes that a job is over, if its client wants to be told. Inside the transaction that ends it. */
  note(seq: number, nowMs: number): void {
    this.#note.run(nowMs, seq);
  }

  due(nowMs: number, limit: number): DueCallback[] {
    return this.#db
      .query<DueCallback, [number, number]>(
        `SELECT job_seq AS seq, callback_url AS url, attempts FROM callbacks
         JOIN jobs ON seq = job_seq WHERE due_ms <= ? ORDER BY due_ms LIMIT ?`,
      )
      .all(nowMs, limit);
  }

  row(seq: number): JobRow | null {
    return this.#db.query<JobRow, [number]>(`${SELECT_JOB} WHERE seq = (SELECT ?)`).get(seq);
  }

  /** Delivered, or given up. */
  remove(seq: number): void {
    this.#db.query("DELETE FROM callbacks WHERE job_seq = ?").run(seq);
  }

  postpone(seq: number, attempts: number, dueMs: number): void {
    this.#db
      .query("UPDATE callbacks SET attempts = ?, due_ms = ? WHERE job_seq = ?")
      .run(attempts, dueMs, seq);
  }

  /** Makes all of them due. What was to be waited for was the time of a clock that may have been set meanwhile. */
  allDue(nowMs: number): void {
    this.#db.query("UPDATE callbacks SET due_ms = ?1 WHERE due_ms > ?1").run(nowMs);
  }

  count(): number {
    const row = this.#db.query<{ n: number }, []>("SELECT count(*) AS n FROM callbacks").get();
    return row?.n ?? 0;
  }
}
