import type { Database } from "bun:sqlite";

/** Dataset rows whose difficulty is known; of more those go that were met longest ago. */
const MAX_INSTANCES = 1_000_000;

/**
 * Groups that may go, with their batch or without one: over, without a rollout that is still there, and nothing that a batch under way or the next one
 * needs. The rollouts are the bulk and go before, by age or size.
 */
const GROUPS = `
  SELECT groups.seq FROM groups LEFT JOIN batches ON batches.seq = groups.batch_seq
  WHERE groups.finished_ms <= ?1
    AND NOT EXISTS (SELECT 1 FROM jobs WHERE jobs.group_seq = groups.seq)
    AND (batches.seq IS NULL OR (batches.finished_ms <= ?1 AND batches.finished_ms <= ?2))
  ORDER BY groups.finished_ms LIMIT ?3`;

const BATCHES = `
  SELECT seq FROM batches
  WHERE finished_ms <= ? AND finished_ms <= ?
    AND NOT EXISTS (SELECT 1 FROM groups WHERE groups.batch_seq = batches.seq)
  ORDER BY finished_ms LIMIT ?`;

const INSTANCES = `
  DELETE FROM instances WHERE key IN (
    SELECT key FROM instances ORDER BY updated_ms
    LIMIT max(0, min(?2, (SELECT count(*) FROM instances) - ?1)))`;

/** Takes old groups and batches away, with the events of their ends, and instances beyond a bound. */
export class GroupRetention {
  readonly #db: Database;
  readonly #maxInstances: number;

  constructor(db: Database, maxInstances = MAX_INSTANCES) {
    this.#db = db;
    this.#maxInstances = maxInstances;
  }

  /**
   * Of each at most `limit`. Inside a transaction. Returns how many went.
   *
   * @param carriedMs a batch that ended later keeps what another one may take over
   */
  remove(beforeMs: number, carriedMs: number, limit: number): number {
    const groups = this.#take("groups", "group_seq", GROUPS, beforeMs, carriedMs, limit);
    const batches = this.#take("batches", "batch_seq", BATCHES, beforeMs, carriedMs, limit);
    const { changes } = this.#db.query(INSTANCES).run(this.#maxInstances, limit);
    return groups + batches + changes;
  }

  #take(table: string, column: string, sql: string, ...values: number[]): number {
    const rows = this.#db.query<{ seq: number }, number[]>(sql).all(...values);
    const forget = this.#db.query(`DELETE FROM group_events WHERE ${column} = ?`);
    const remains = this.#db.query("DELETE FROM remains WHERE group_seq = ?");
    const remove = this.#db.query(`DELETE FROM ${table} WHERE seq = ?`);
    for (const { seq } of rows) {
      forget.run(seq);
      if (table === "groups") remains.run(seq);
      remove.run(seq);
    }
    return rows.length;
  }
}
