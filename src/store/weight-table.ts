import { asc } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { weightPause, weightVersions } from "./tables.ts";

type PauseMode = "drain" | "abort" | "keep";

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

  /** Null where calls go on. */
  pause(): PauseMode | null {
    return this.#db.select().from(weightPause).get()?.mode ?? null;
  }

  setPause(mode: PauseMode | null): void {
    this.#db.delete(weightPause).run();
    if (mode !== null) this.#db.insert(weightPause).values({ id: 1, mode }).run();
  }
}
