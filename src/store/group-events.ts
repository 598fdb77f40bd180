import type { Database } from "bun:sqlite";
import type { BatchState } from "../jobs/batch.ts";
import type { GroupState } from "../jobs/group.ts";
import { BATCH_CLIENT, GROUP_CLIENT } from "./owners.ts";
import type { BatchRow, GroupRow } from "./tables.ts";

/** Readers that fall further behind miss what is older. */
const KEPT = 100_000;

/** The end of a group or of a batch. */
export type GroupEvent = {
  ordinal: number;
  event: `group_${GroupState}` | "batch_finished";
  id: string;
  state: GroupState | BatchState;
  /** Of a group: its batch, whether it was informative (1, 0), and its place among those handed over. */
  batch: string | null;
  informative: number | null;
  delivered: number | null;
  error: string | null;
  client: string | null;
};

const AFTER = `
  SELECT ordinal, event, coalesce(groups.id, batches.id) AS id,
    coalesce(groups.state, batches.state) AS state, owners.id AS batch,
    groups.informative, groups.delivered, coalesce(groups.error, batches.error) AS error,
    coalesce(${GROUP_CLIENT}, ${BATCH_CLIENT}) AS client
  FROM group_events
    LEFT JOIN groups ON groups.seq = group_events.group_seq
    LEFT JOIN batches AS owners ON owners.seq = groups.batch_seq
    LEFT JOIN batches ON batches.seq = group_events.batch_seq
  WHERE ordinal > ? ORDER BY ordinal LIMIT ?`;

const COUNTS = `
  SELECT 'group' AS kind, state, count(*) AS count FROM groups WHERE finished_ms IS NULL GROUP BY state
  UNION ALL
  SELECT 'batch', state, count(*) FROM batches WHERE finished_ms IS NULL GROUP BY state`;

const CARRIED = `
  SELECT count(*) AS count FROM groups JOIN batches ON batches.seq = groups.batch_seq
  WHERE groups.finished_ms IS NULL AND batches.finished_ms IS NOT NULL`;

/** The ends of groups and batches, in order. A part of the store: same connection, same transactions. */
export class GroupEventLog {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** The position behind which events from now on will be. */
  get cursor(): number {
    const last = this.#db.query<{ at: number }, []>(
      "SELECT coalesce(max(ordinal), 0) AS at FROM group_events",
    );
    return last.get()?.at ?? 0;
  }

  groupEnded({ seq }: Pick<GroupRow, "seq">, state: GroupState): void {
    this.#append(`group_${state}`, seq, null);
  }

  batchEnded({ seq }: Pick<BatchRow, "seq">): void {
    this.#append("batch_finished", null, seq);
  }

  after(ordinal: number, limit: number): GroupEvent[] {
    return this.#db.query<GroupEvent, [number, number]>(AFTER).all(ordinal, limit);
  }

  /** How many groups and batches are not over. */
  unfinished(): { kind: "group" | "batch"; state: string; count: number }[] {
    return this.#db
      .query<{ kind: "group" | "batch"; state: string; count: number }, []>(COUNTS)
      .all();
  }

  /** How many groups wait for another batch. */
  carried(): number {
    return this.#db.query<{ count: number }, []>(CARRIED).get()?.count ?? 0;
  }

  #append(event: GroupEvent["event"], groupSeq: number | null, batchSeq: number | null): void {
    const { lastInsertRowid } = this.#db
      .query("INSERT INTO group_events (event, group_seq, batch_seq) VALUES (?, ?, ?)")
      .run(event, groupSeq, batchSeq);
    this.#db
      .query("DELETE FROM group_events WHERE ordinal <= ?")
      .run(Number(lastInsertRowid) - KEPT);
  }
}
