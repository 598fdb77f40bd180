import type { Database } from "bun:sqlite";

/** The turns of an attempt, as JSON. */
export type PastTurns = { attempt: number; turns: string };

/** What attempts whose RUN failed had done, for their place in the timeline. It goes with its job. */
export class PastTurnsTable {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  save(seq: number, attempt: number, turns: string): void {
    this.#db
      .query("INSERT OR REPLACE INTO past_turns (job_seq, attempt, turns) VALUES (?, ?, ?)")
      .run(seq, attempt, turns);
  }

  of(seq: number): PastTurns[] {
    return this.#db
      .query<PastTurns, [number]>("SELECT attempt, turns FROM past_turns WHERE job_seq = ?")
      .all(seq);
  }
}
