import { and, asc, eq, getTableColumns, gt, inArray, isNull, type SQL, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { GroupState } from "../jobs/group.ts";
import { GROUP_CLIENT } from "./owners.ts";
import { type GroupRow, groups, type JobRow, jobBodies, jobs } from "./tables.ts";

export type NewGroup = {
  id: string;
  bodySha256: string;
  batch: { seq: number; position: number } | null;
  instanceKey: string;
  instance: string;
  template: string;
  rules: string;
  createdMs: number;
};

/** What becomes of a group. Absent: unchanged. */
export type GroupChange = Partial<
  Pick<
    GroupRow,
    | "batch_seq"
    | "position"
    | "state"
    | "informative"
    | "delivered"
    | "started_ms"
    | "finished_ms"
    | "error"
  >
>;

export type GroupFilter = { states?: GroupState[]; client?: string; limit: number; after: number };

/** The groups of the job table. A part of the store: same connection, same transactions. */
export class GroupStore {
  readonly #db: BunSQLiteDatabase;

  constructor(db: BunSQLiteDatabase) {
    this.#db = db;
  }

  insert(group: NewGroup): GroupRow {
    return this.#db
      .insert(groups)
      .values({
        id: group.id,
        body_sha256: group.bodySha256,
        batch_seq: group.batch?.seq ?? null,
        position: group.batch?.position ?? null,
        instance_key: group.instanceKey,
        instance: group.instance,
        template: group.template,
        rules: group.rules,
        state: "waiting",
        created_ms: group.createdMs,
      })
      .returning()
      .get();
  }

  update(seq: number, change: GroupChange): void {
    this.#db.update(groups).set(change).where(eq(groups.seq, seq)).run();
  }

  byId(id: string): GroupRow | null {
    return this.#db.select().from(groups).where(eq(groups.id, id)).get() ?? null;
  }

  bySeq(seq: number): GroupRow | null {
    return this.#db.select().from(groups).where(eq(groups.seq, seq)).get() ?? null;
  }

  /** Its rollouts in the order in which they were begun; the last one of a sample stands for it. */
  members(seq: number): JobRow[] {
    const { job_seq, priority, labels, outcome } = jobBodies;
    return this.#db
      .select({ ...getTableColumns(jobs), priority, labels, outcome })
      .from(jobs)
      .innerJoin(jobBodies, eq(job_seq, jobs.seq))
      .where(sql`${jobs.group_seq} = (SELECT ${seq})`)
      .orderBy(asc(jobs.seq))
      .all();
  }

  /** Groups that are under way, oldest first. */
  running(): GroupRow[] {
    const unfinished = and(isNull(groups.finished_ms), eq(groups.state, "running"));
    return this.#db.select().from(groups).where(unfinished).orderBy(asc(groups.seq)).all();
  }

  list({ states, client, limit, after }: GroupFilter): GroupRow[] {
    const conditions: SQL[] = [gt(groups.seq, after)];
    if (states) conditions.push(inArray(groups.state, states));
    if (client !== undefined) conditions.push(sql`${sql.raw(GROUP_CLIENT)} = ${client}`);
    return this.#db
      .select()
      .from(groups)
      .where(and(...conditions))
      .orderBy(asc(groups.seq))
      .limit(limit)
      .all();
  }
}
