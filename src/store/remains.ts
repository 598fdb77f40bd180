import type { Database } from "bun:sqlite";
import type { BatchLength } from "./batch-store.ts";

/** What stays of a group's rollout that retention has removed, for as long as its group is known. */
export type Remains = {
  sample: number;
  id: string;
  state: string;
  reward: number | null;
  tokens: number | null;
};

/** What a batch has handed over: a group, and the rollouts that stood for its samples. */
export type HandedOver = { group: string; rewards: number[]; rollouts: string[] };

/** Before a job goes. The last one begun for a sample stands for it. */
export const LEAVE_REMAINS = `
  INSERT INTO remains (group_seq, sample, job_seq, id, state, reward, tokens)
  SELECT group_seq, sample, seq, id, state, reward, sampled_tokens FROM jobs
  WHERE seq = ? AND group_seq IS NOT NULL
  ON CONFLICT (group_seq, sample) DO UPDATE SET job_seq = excluded.job_seq, id = excluded.id,
    state = excluded.state, reward = excluded.reward, tokens = excluded.tokens
  WHERE excluded.job_seq > remains.job_seq`;

const OF_GROUP = `
  SELECT sample, id, state, reward, tokens FROM remains WHERE group_seq = ? ORDER BY sample`;

const OF_BATCH = `
  WITH handed AS (SELECT seq, id, delivered FROM groups WHERE batch_seq = ? AND delivered IS NOT NULL)
  SELECT handed.id AS of_group, member.sample, member.id, member.reward FROM handed JOIN (
    SELECT group_seq, sample, seq, id, reward FROM jobs WHERE group_seq IN (SELECT seq FROM handed)
    UNION ALL
    SELECT group_seq, sample, job_seq, id, reward FROM remains WHERE group_seq IN (SELECT seq FROM handed)
  ) AS member ON member.group_seq = handed.seq
  ORDER BY handed.delivered, member.sample, member.seq`;

const LENGTHS = `
  SELECT remains.state, groups.delivered, groups.state AS group_state, remains.tokens, 0 AS replaced
  FROM remains JOIN groups ON groups.seq = remains.group_seq WHERE groups.batch_seq = ?`;

type MemberRow = { of_group: string; sample: number; id: string; reward: number | null };

/** Reads what stayed. A part of the store: same connection, same transactions. */
export class RemainsStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  ofGroup(seq: number): Remains[] {
    return this.#db.query<Remains, [number]>(OF_GROUP).all(seq);
  }

  /** Of a batch's rollouts that are gone, for what is said about lengths. */
  lengths(batchSeq: number): BatchLength[] {
    return this.#db.query<BatchLength, [number]>(LENGTHS).all(batchSeq);
  }

  /** In the order in which the groups were handed over. */
  handedOver(batchSeq: number): HandedOver[] {
    const rows = this.#db.query<MemberRow, [number]>(OF_BATCH).all(batchSeq);
    return [...Map.groupBy(rows, (row) => row.of_group)].map(([group, members]) => {
      const last = [...new Map(members.map((member) => [member.sample, member])).values()];
      return {
        group,
        rewards: last.flatMap(({ reward }) => (reward === null ? [] : [reward])),
        rollouts: last.map(({ id }) => id),
      };
    });
  }
}
