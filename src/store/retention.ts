import type { Database } from "bun:sqlite";
import { LEAVE_REMAINS } from "./remains.ts";

/** Pages that one step gives back to the file system, so that it stays short. */
const VACUUM_PAGES = 2000;

/**
 * Finished jobs that may go: by age, or the oldest where the database is too large. The youngest stays, because
 * cursors count on from its position; so do those whose group or batch is not over, and those of groups that the
 * next batch may begin with.
 */
const EXPENDABLE = `
  SELECT seq FROM jobs
  WHERE finished_seq > 0 AND finished_seq < (SELECT max(finished_seq) FROM jobs)
    AND finished_ms <= ?
    AND seq NOT IN (SELECT job_seq FROM callbacks)
    AND NOT EXISTS (
      SELECT 1 FROM groups LEFT JOIN batches ON batches.seq = groups.batch_seq
      WHERE groups.seq = jobs.group_seq AND (
        groups.finished_ms IS NULL OR batches.state = 'running'
        OR (batches.finished_ms > ? AND groups.informative = 1 AND groups.delivered IS NULL)))
  ORDER BY finished_seq LIMIT ?`;

/** A group that has lost a rollout is nothing that a batch could hand over. */
const DETACH = `
  UPDATE groups SET batch_seq = NULL, position = NULL
  WHERE seq = (SELECT group_seq FROM jobs WHERE seq = ?) AND informative = 1 AND delivered IS NULL`;

/** Takes old results away. */
export class Retention {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** What the database holds, without the pages that are free. Units: bytes. */
  usedBytes(): number {
    const value = (pragma: string) => Number(this.#db.query(`PRAGMA ${pragma}`).values()[0]?.[0]);
    return (value("page_count") - value("freelist_count")) * value("page_size");
  }

  /**
   * Removes the oldest jobs that finished until `beforeMs`, at most `limit`. Inside a transaction.
   *
   * @param carriedMs a batch that ended later keeps what another one may take over
   */
  remove(beforeMs: number, carriedMs: number, limit: number): number {
    const rows = this.#db
      .query<{ seq: number }, [number, number, number]>(EXPENDABLE)
      .all(beforeMs, carriedMs, limit);
    const statements = [
      LEAVE_REMAINS,
      DETACH,
      "DELETE FROM trajectories WHERE job_seq = ?",
      "DELETE FROM job_bodies WHERE job_seq = ?",
      "DELETE FROM labels WHERE job_seq = ?",
      "DELETE FROM jobs WHERE seq = ?",
    ].map((sql) => this.#db.query(sql));
    for (const { seq } of rows) for (const statement of statements) statement.run(seq);
    return rows.length;
  }

  /** Gives some free pages back to the file system. Outside of transactions. */
  shrink(): void {
    this.#db.run(`PRAGMA incremental_vacuum(${VACUUM_PAGES})`);
  }
}
