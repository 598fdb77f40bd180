import {
  and,
  asc,
  count,
  desc,
  eq,
  gt,
  inArray,
  isNotNull,
  isNull,
  max,
  type SQL,
  sql,
} from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import type { ErrorBody } from "../errors.ts";
import type { BatchState } from "../jobs/batch.ts";
import type { GroupState } from "../jobs/group.ts";
import { clientOfToken, OPERATOR } from "../jobs/owner.ts";
import { BATCH_CLIENT } from "./owners.ts";
import { type BatchRow, batches, type GroupRow, groups, jobs } from "./tables.ts";

export type NewBatch = Pick<
  BatchRow,
  "id" | "body_sha256" | "options" | "closed" | "source" | "series" | "created_ms"
>;

export type BatchChange = Partial<
  Pick<BatchRow, "state" | "closed" | "source" | "finished_ms" | "error">
>;

export type BatchFilter = { states?: BatchState[]; client?: string; limit: number; after: number };

/** A rollout of a batch, for what is said about lengths. */
export type BatchLength = {
  state: string;
  /** Of its group; null where that was not delivered. */
  delivered: number | null;
  group_state: GroupState;
  tokens: number | null;
  /** 1 where another one has been begun for its sample. */
  replaced: number;
};

const REPLACED = sql<number>`EXISTS (SELECT 1 FROM jobs AS later
  WHERE later.group_seq = jobs.group_seq AND later.sample = jobs.sample AND later.seq > jobs.seq)`;

/** Rollouts whose rewards are their group's. */
const REWARDED = and(eq(jobs.state, "succeeded"), sql`NOT ${REPLACED}`);

/** What another batch may take over: groups that are not over, and informative ones that were not needed. */
const LEFT = sql`(${groups.finished_ms} IS NULL OR (${groups.informative} = 1 AND ${groups.delivered} IS NULL))`;

/** The batches of the job table. A part of the store: same connection, same transactions. */
export class BatchStore {
  readonly #db: BunSQLiteDatabase;

  constructor(db: BunSQLiteDatabase) {
    this.#db = db;
  }

  insert(batch: NewBatch): BatchRow {
    const values = { ...batch, state: "running" } as const;
    return this.#db.insert(batches).values(values).returning().get();
  }

  update(seq: number, change: BatchChange): void {
    this.#db.update(batches).set(change).where(eq(batches.seq, seq)).run();
  }

  byId(id: string): BatchRow | null {
    return this.#db.select().from(batches).where(eq(batches.id, id)).get() ?? null;
  }

  bySeq(seq: number): BatchRow | null {
    return this.#db.select().from(batches).where(eq(batches.seq, seq)).get() ?? null;
  }

  /** The batch of an owner's series that was begun last. @param scope as `scopeOf` has it */
  lastOfSeries(series: string, scope: string | null): BatchRow | null {
    const { seq } = batches;
    const client = sql.raw(BATCH_CLIENT);
    const unscoped = sql`(${client} NOT LIKE 'token:%' OR ${client} = ${clientOfToken(OPERATOR)})`;
    const own = scope === null ? unscoped : sql`${client} = ${scope}`;
    const last = this.#db
      .select()
      .from(batches)
      .where(and(eq(batches.series, series), own));
    return last.orderBy(desc(seq)).limit(1).get() ?? null;
  }

  running(): BatchRow[] {
    const unfinished = isNull(batches.finished_ms);
    return this.#db.select().from(batches).where(unfinished).orderBy(asc(batches.seq)).all();
  }

  list({ states, client, limit, after }: BatchFilter) {
    const conditions: SQL[] = [gt(batches.seq, after)];
    if (states) conditions.push(inArray(batches.state, states));
    if (client !== undefined) conditions.push(sql`${sql.raw(BATCH_CLIENT)} = ${client}`);
    return this.#db
      .select()
      .from(batches)
      .where(and(...conditions))
      .orderBy(asc(batches.seq))
      .limit(limit)
      .all();
  }

  /** How many groups the batch has, by state and worth. */
  groupCounts(seq: number): { state: GroupState; informative: number | null; count: number }[] {
    return this.#db
      .select({ state: groups.state, informative: groups.informative, count: count() })
      .from(groups)
      .where(eq(groups.batch_seq, seq))
      .groupBy(groups.state, groups.informative)
      .all();
  }

  /** Where the next instance goes. */
  nextPosition(seq: number): number {
    const last = this.#db
      .select({ position: max(groups.position) })
      .from(groups)
      .where(eq(groups.batch_seq, seq))
      .get();
    return (last?.position ?? -1) + 1;
  }

  /** The groups that wait, in order. */
  waiting(seq: number, limit: number): GroupRow[] {
    return this.#groups(seq, inArray(groups.state, ["waiting", "carried"]), limit);
  }

  /** Groups that have been begun and may still be delivered: under way, or complete and informative. */
  begun(seq: number): GroupRow[] {
    const undelivered = sql`(${groups.state} = 'running' OR (${groups.informative} = 1 AND ${groups.delivered} IS NULL))`;
    return this.#groups(seq, undelivered, -1);
  }

  delivered(seq: number, after: number, limit: number): GroupRow[] {
    const behind = and(isNotNull(groups.delivered), gt(groups.delivered, after));
    return this.#db
      .select()
      .from(groups)
      .where(and(eq(groups.batch_seq, seq), behind))
      .orderBy(asc(groups.delivered))
      .limit(limit)
      .all();
  }

  /** Ends the groups of a batch that have not been begun. */
  endWaiting(seq: number, state: "ended" | "cancelled", error: string, nowMs: number): void {
    const waiting = and(eq(groups.batch_seq, seq), inArray(groups.state, ["waiting", "carried"]));
    this.#db.update(groups).set({ state, error, finished_ms: nowMs }).where(waiting).run();
  }

  /** Sampled tokens of its rollouts that are over. */
  lengths(seq: number): BatchLength[] {
    return this.#db
      .select({
        state: jobs.state,
        delivered: groups.delivered,
        group_state: groups.state,
        tokens: jobs.sampled_tokens,
        replaced: REPLACED,
      })
      .from(jobs)
      .innerJoin(groups, eq(jobs.group_seq, groups.seq))
      .where(and(eq(groups.batch_seq, seq), isNotNull(jobs.finished_ms)))
      .all();
  }

  /** Ids of its rollouts that are not over. */
  unfinishedRollouts(seq: number): string[] {
    const open = and(eq(groups.batch_seq, seq), isNull(jobs.finished_ms));
    const of = this.#db.select({ id: jobs.id }).from(jobs);
    const rows = of.innerJoin(groups, eq(jobs.group_seq, groups.seq)).where(open).all();
    return rows.map(({ id }) => id);
  }

  /** How many groups it has delivered, and their sampled tokens. */
  deliveries(seq: number): { delivered: number; tokens: number } {
    const sampled = sql<number>`coalesce(sum(${jobs.sampled_tokens}), 0)`;
    const row = this.#db
      .select({ delivered: max(groups.delivered), tokens: sampled })
      .from(groups)
      .leftJoin(jobs, and(eq(jobs.group_seq, groups.seq), REWARDED))
      .where(and(eq(groups.batch_seq, seq), isNotNull(groups.delivered)))
      .get();
    return { delivered: row?.delivered ?? 0, tokens: row?.tokens ?? 0 };
  }

  /** Of the group that came to this end last. */
  lastError(seq: number, state: "failed" | "ended"): ErrorBody | null {
    const row = this.#db
      .select({ error: groups.error })
      .from(groups)
      .where(and(eq(groups.batch_seq, seq), eq(groups.state, state)))
      .orderBy(desc(groups.finished_ms))
      .limit(1)
      .get();
    return row?.error ? JSON.parse(row.error) : null;
  }

  /** Batches that are over, with groups that are not. */
  carrying(): BatchRow[] {
    const rows = this.#db
      .selectDistinct({ batch: batches })
      .from(batches)
      .innerJoin(groups, eq(groups.batch_seq, batches.seq))
      .where(and(isNotNull(batches.finished_ms), isNull(groups.finished_ms)))
      .all();
    return rows.map(({ batch }) => batch);
  }

  carries(seq: number): boolean {
    const unfinished = and(eq(groups.batch_seq, seq), isNull(groups.finished_ms));
    return this.#db.select({ seq: groups.seq }).from(groups).where(unfinished).get() !== undefined;
  }

  /** Whether there is anything for `adopt`. */
  leaves(seq: number): boolean {
    const left = and(eq(groups.batch_seq, seq), LEFT);
    return this.#db.select({ seq: groups.seq }).from(groups).where(left).get() !== undefined;
  }

  /** Moves what one batch left to another that has no groups yet. */
  adopt(from: number, to: number): void {
    const moved = and(eq(groups.batch_seq, from), LEFT);
    this.#db.update(groups).set({ batch_seq: to }).where(moved).run();
  }

  /** Sampled tokens of one group's rewards. */
  tokensOf(groupSeq: number): number {
    const row = this.#db
      .select({ tokens: sql<number>`coalesce(sum(${jobs.sampled_tokens}), 0)` })
      .from(jobs)
      .where(and(eq(jobs.group_seq, groupSeq), REWARDED))
      .get();
    return row?.tokens ?? 0;
  }

  /** Time that has gone into RUN for a group. Units: milliseconds. */
  workOf(groupSeq: number, nowMs: number): number {
    const now = sql`CASE WHEN ${jobs.state} = 'active' AND ${jobs.stage} = 'run' THEN ${nowMs} - ${jobs.since_ms} ELSE 0 END`;
    const row = this.#db
      .select({
        work: sql<number>`coalesce(sum(coalesce(${jobs.life} ->> '$.timings.run.activeMs', 0) + ${now}), 0)`,
      })
      .from(jobs)
      .where(eq(jobs.group_seq, groupSeq))
      .get();
    return row?.work ?? 0;
  }

  /** A client's jobs that wait for INIT or RUN, counted up to `limit`: whether there is enough to do. */
  pendingAheadOfRun(client: string, limit: number): number {
    // In the words of the index `jobs_claimable`: by parameters SQLite could not know that it fits.
    const waiting = sql`state = 'pending' AND not_before_ms IS NULL`;
    const ahead = and(waiting, eq(jobs.client, client), inArray(jobs.stage, ["init", "run"]));
    const some = this.#db.select({ seq: jobs.seq }).from(jobs).where(ahead).limit(limit).as("some");
    return this.#db.select({ n: count() }).from(some).get()?.n ?? 0;
  }

  #groups(seq: number, condition: SQL, limit: number): GroupRow[] {
    return this.#db
      .select()
      .from(groups)
      .where(and(eq(groups.batch_seq, seq), condition))
      .orderBy(asc(groups.position))
      .limit(limit)
      .all();
  }
}
