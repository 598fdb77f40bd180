import { asc } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { weightPause, weightVersions } from "./tables.ts";

/** Units: milliseconds, `untilMs` of the service's clock. `leaseMs` is 0 in rows of versions that had no leases. */
type Pause = { mode: "drain" | "abort" | "keep"; untilMs: number; leaseMs: number };

/** The versions of the weights, and whether calls wait for the next. A part of the store: same connection. */
export class WeightTable {
  readonly #db: BunSQLiteDatabase;

  constructor(db: BunSQLiteDatabase) {
    this.#db = db;
  }

  /** Oldest first. */
  versions(): { version: string; announced_ms: number }[] {
    return this.#db.select().from(weightVersions).orderBy(asc(weightVersions.ordinal)).all();
  }

  add(row: { version: string; announced_ms: number }): void {
    this.#db.insert(weightVersions).values(row).run();
  }

  /** The pause that was not ended; null where there is none. */
  pause(): Pause | null {
    const row = this.#db.select().from(weightPause).get();
    return row ? { mode: row.mode, untilMs: row.until_ms, leaseMs: row.lease_ms } : null;
  }

  setPause(pause: Pause | null): void {
    this.#db.delete(weightPause).run();
    if (pause === null) return;
    const { mode, untilMs, leaseMs } = pause;
    this.#db
      .insert(weightPause)
      .values({ id: 1, mode, until_ms: untilMs, lease_ms: leaseMs })
      .run();
  }
}
