import type { Database } from "bun:sqlite";

/** The leases of unfinished jobs: who renews one says that somebody still wants its result. */
export class LeaseTable {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** False where the job is over, unknown, or has no lease. */
  renew(id: string, nowMs: number): boolean {
    const { changes } = this.#db
      .query(
        `UPDATE jobs SET lease_until_ms = ? + lease_ms
         WHERE id = ? AND lease_ms IS NOT NULL AND finished_ms IS NULL`,
      )
      .run(nowMs, id);
    return changes > 0;
  }

  /** Renews every lease. While the service was down, or its clock was set, nobody could. */
  renewAll(nowMs: number): void {
    this.#db
      .query(
        `UPDATE jobs INDEXED BY jobs_leased SET lease_until_ms = ? + lease_ms
         WHERE lease_until_ms IS NOT NULL AND finished_ms IS NULL`,
      )
      .run(nowMs);
  }

  /** Ids of jobs whose lease is over and that nobody is ending yet. */
  over(nowMs: number): string[] {
    return this.#db
      .query<{ id: string }, [number]>(
        `SELECT id FROM jobs INDEXED BY jobs_leased
         WHERE lease_until_ms <= ? AND finished_ms IS NULL AND ending IS NULL LIMIT 1000`,
      )
      .all(nowMs)
      .map(({ id }) => id);
  }
}
