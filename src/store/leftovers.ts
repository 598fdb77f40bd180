import type { Database } from "bun:sqlite";
import type { JobHead } from "./tables.ts";

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

const IN_CRASHES = `
  SELECT id, crashes FROM jobs INDEXED BY jobs_unfinished
  WHERE finished_ms IS NULL AND crashes >= (SELECT ?)`;

const CLAMP_DEADLINES = `
  UPDATE jobs SET deadline_ms = min(deadline_ms, ?1 + (life ->> '$.limits.totalMs'))
  WHERE finished_ms IS NULL AND created_ms > ?1`;

/** The unfinished jobs that a former service left, for the next one's start. */
export class Leftovers {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Jobs behind a position that can't stay as a service left them that died; at most 500. */
  recoverable(after: number): JobHead[] {
    return this.#db.query<JobHead, [number]>(RECOVERABLE).all(after);
  }

  /** Jobs that have been active in so many crashes. */
  inCrashes(least: number): { id: string; crashes: number }[] {
    return this.#db.query<{ id: string; crashes: number }, [number]>(IN_CRASHES).all(least);
  }

  /** After the clock was set back: no job lasts longer than its limit from now. */
  clampDeadlines(nowMs: number): void {
    this.#db.query(CLAMP_DEADLINES).run(nowMs);
  }
}
