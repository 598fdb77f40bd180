import type { Database } from "bun:sqlite";
import { isPaused, type Job, NEVER_MS } from "../jobs/job.ts";

/**
 * Rollouts that were paused between two batches: what they had recorded until then, and how much of their time was
 * left. The record stays until the rollout is over, so that a later attempt begins where it was paused last. A part
 * of the store: same connection, same transactions.
 */
export class PausedTable {
  readonly #save;
  readonly #load;
  readonly #leftMs;
  readonly #setDeadline;
  readonly #forgetRecord;
  readonly #delete;
  readonly #paused;
  /** Which jobs have a row: nearly none has, and each job that ends asks. */
  readonly #known: Set<number>;

  constructor(db: Database) {
    this.#save = db.query<null, [number, number, Buffer | null]>(
      `INSERT INTO paused_rollouts (job_seq, left_ms, record) VALUES (?, ?, ?)
       ON CONFLICT DO UPDATE SET left_ms = min(left_ms, excluded.left_ms),
         record = coalesce(excluded.record, record)`,
    );
    this.#load = db.query<{ record: Uint8Array | null }, [number]>(
      "SELECT record FROM paused_rollouts WHERE job_seq = ?",
    );
    this.#leftMs = db.query<{ left_ms: number }, [number]>(
      "SELECT left_ms FROM paused_rollouts WHERE job_seq = ?",
    );
    this.#setDeadline = db.query<null, [number, number]>(
      "UPDATE jobs SET deadline_ms = ? WHERE seq = ?",
    );
    this.#forgetRecord = db.query<null, [number]>(
      "UPDATE paused_rollouts SET record = NULL WHERE job_seq = ?",
    );
    this.#delete = db.query<null, [number]>("DELETE FROM paused_rollouts WHERE job_seq = ?");
    this.#paused = db.query<{ seq: number }, []>(
      `SELECT seq FROM jobs WHERE not_before_ms = ${NEVER_MS}`,
    );
    const rows = db.query<{ job_seq: number }, []>("SELECT job_seq FROM paused_rollouts").all();
    this.#known = new Set(rows.map(({ job_seq }) => job_seq));
  }

  /**
   * A job's row has just been written as paused.
   *
   * @param leftMs of its time in total
   * @param record its trajectory so far, as JSON; null leaves what is known
   */
  hold(seq: number, leftMs: number, record: string | null): void {
    const compressed = record === null ? null : Buffer.from(Bun.zstdCompressSync(record));
    this.#save.run(seq, leftMs, compressed);
    this.#setDeadline.run(NEVER_MS, seq);
    this.#known.add(seq);
  }

  /** Its row has just been written as one that goes on. */
  release(seq: number, deadlineMs: number): void {
    this.#setDeadline.run(deadlineMs, seq);
  }

  /** What was left of its time when it was paused first. Units: milliseconds. */
  leftMs(seq: number): number {
    return this.#leftMs.get(seq)?.left_ms ?? 0;
  }

  /** The trajectory of a rollout that was paused, as JSON; null where there is none to go on from. */
  record(seq: number): string | null {
    if (!this.#known.has(seq)) return null;
    const record = this.#load.get(seq)?.record;
    return record ? Bun.zstdDecompressSync(record).toString() : null;
  }

  /** It begins from nothing again. */
  forgetRecord(seq: number): void {
    if (this.#known.has(seq)) this.#forgetRecord.run(seq);
  }

  /** It is over. */
  over(seq: number): void {
    if (this.#known.delete(seq)) this.#delete.run(seq);
  }

  /** The jobs that are paused now. */
  paused(): number[] {
    return this.#paused.all().map(({ seq }) => seq);
  }
}

/** What a paused job may still take once it goes on; of one that runs, from now. Units: milliseconds. */
export function timeLeftMs(job: Job, nowMs: number): number {
  return isPaused(job) ? NEVER_MS : Math.max(0, job.deadlineMs - nowMs);
}
