import { asc, eq } from "drizzle-orm";
import type { BunSQLiteDatabase } from "drizzle-orm/bun-sqlite";
import { type BackendRow, backends } from "./tables.ts";

/** The inference servers that were added. A part of the store: same connection, same transactions. */
export class BackendTable {
  readonly #db: BunSQLiteDatabase;

  constructor(db: BunSQLiteDatabase) {
    this.#db = db;
  }

  /** In the order in which they were added. */
  list(): BackendRow[] {
    return this.#db.select().from(backends).orderBy(asc(backends.added_ms)).all();
  }

  /** A new one, or the one of that id anew. */
  save(row: BackendRow): void {
    this.#db
      .insert(backends)
      .values(row)
      .onConflictDoUpdate({ target: backends.id, set: row })
      .run();
  }

  /** What another probe found. */
  saveProfile(id: string, profile: object | null): void {
    const text = profile === null ? null : JSON.stringify(profile);
    this.#db.update(backends).set({ profile: text }).where(eq(backends.id, id)).run();
  }

  saveLeaving(id: string, leaving: BackendRow["leaving"]): void {
    this.#db.update(backends).set({ leaving }).where(eq(backends.id, id)).run();
  }

  delete(id: string): void {
    this.#db.delete(backends).where(eq(backends.id, id)).run();
  }
}
