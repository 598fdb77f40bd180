import { and, asc, eq, gt, gte, lt, lte, type SQL, sql } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { type InstanceRow, instances } from "./tables.ts";

/** What one decided group says about its instance. */
export type GroupExperience = {
  key: string;
  dataSource: string;
  informative: boolean;
  rewards: number[];
  tokens: number;
  nowMs: number;
};

export type InstanceFilter = {
  dataSource?: string;
  meanAtLeast?: number;
  meanAtMost?: number;
  minRollouts?: number;
  /** Keys behind this one. */
  after: string;
  /** How the keys of one owner begin; none for everybody's. */
  prefix: string;
  limit: number;
};

const meanReward = sql<number>`${instances.reward_sum} / ${instances.rollouts}`;

/** How hard each instance was, over all batches. A part of the store: same connection, same transactions. */
export class InstanceStore {
  readonly #db: BunSQLiteDatabase;

  constructor(db: BunSQLiteDatabase) {
    this.#db = db;
  }

  /** Counts a group once. One without rewards says nothing. */
  learn({ key, dataSource, informative, rewards, tokens, nowMs }: GroupExperience): void {
    if (rewards.length === 0) return;
    const sum = rewards.reduce((total, reward) => total + reward, 0);
    const squares = rewards.reduce((total, reward) => total + reward ** 2, 0);
    const old = this.byKey(key);
    const row: InstanceRow = {
      key,
      data_source: dataSource,
      groups: (old?.groups ?? 0) + 1,
      informative: (old?.informative ?? 0) + (informative ? 1 : 0),
      rollouts: (old?.rollouts ?? 0) + rewards.length,
      reward_sum: (old?.reward_sum ?? 0) + sum,
      reward_squares: (old?.reward_squares ?? 0) + squares,
      tokens: (old?.tokens ?? 0) + tokens,
      last_mean: sum / rewards.length,
      updated_ms: nowMs,
    };
    this.#db
      .insert(instances)
      .values(row)
      .onConflictDoUpdate({ target: instances.key, set: row })
      .run();
  }

  byKey(key: string): InstanceRow | null {
    return this.#db.select().from(instances).where(eq(instances.key, key)).get() ?? null;
  }

  list(filter: InstanceFilter): InstanceRow[] {
    const conditions: SQL[] = [gt(instances.key, filter.after)];
    // What follows "/" in the order of text is "0".
    if (filter.prefix !== "") {
      conditions.push(lt(instances.key, filter.prefix.replace(/\/$/, "0")));
    }
    if (filter.dataSource !== undefined) {
      conditions.push(eq(instances.data_source, filter.dataSource));
    }
    if (filter.meanAtLeast !== undefined) conditions.push(gte(meanReward, filter.meanAtLeast));
    if (filter.meanAtMost !== undefined) conditions.push(lte(meanReward, filter.meanAtMost));
    if (filter.minRollouts !== undefined) {
      conditions.push(gte(instances.rollouts, filter.minRollouts));
    }
    return this.#db
      .select()
      .from(instances)
      .where(and(...conditions))
      .orderBy(asc(instances.key))
      .limit(filter.limit)
      .all();
  }
}
