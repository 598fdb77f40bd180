import type { Database } from "bun:sqlite";
import type { DiskFile } from "./disk-file.ts";

/** As many as SQLite lets gather by itself. Units: pages in the log. */
const MAX_PAGES = 1000;

/** From so many on SQLite folds the log by itself, in a commit: nobody has asked for it here. */
const SQLITE_MAX_PAGES = 4 * MAX_PAGES;

type Folding = { database: boolean; done: Promise<void>; end(error: Error | null): void };

/**
 * Folds SQLite's log into the database (its "checkpoint") without holding up the thread that writes it.
 *
 * SQLite does it in a commit: it syncs the log, copies the pages into the database file, and syncs that, which takes
 * milliseconds of the thread. Here it copies only, with `synchronous = OFF`, between two syncs that another thread
 * makes. Until the second is over nothing may be written: the log would begin anew, over pages that the database on
 * the disk does not have yet. Ticks wait for `begin`, and any other write calls `finish`.
 */
export class LogFold implements Disposable {
  readonly #db: Database;
  readonly #log: DiskFile;
  readonly #database: DiskFile;
  readonly #written;
  readonly #pages;
  readonly #copy;
  #folding: Folding | null = null;
  #maxPages = MAX_PAGES;
  #disposed = false;

  constructor(db: Database, log: DiskFile, database: DiskFile) {
    this.#db = db;
    this.#log = log;
    this.#database = database;
    db.run(`PRAGMA wal_autocheckpoint = ${SQLITE_MAX_PAGES}`);
    this.#written = db.query<{ count: number }, []>("SELECT total_changes() AS count");
    this.#pages = db.query<{ log: number; checkpointed: number }, []>(
      "PRAGMA wal_checkpoint(NOOP)",
    );
    this.#copy = db.query("PRAGMA wal_checkpoint(PASSIVE)");
  }

  /**
   * Begins where the log has grown enough. Resolves when writes may go on; null where they may already. Rejects when
   * the disk fails.
   */
  begin(): Promise<void> | null {
    if (this.#disposed) return null;
    if (this.#folding) return this.#folding.done;
    if (this.#database.failed) return Promise.reject(this.#database.failed);
    if (this.#unfolded() < this.#maxPages) return null;
    const { promise: done, resolve, reject } = Promise.withResolvers<void>();
    const before = this.#written.get()?.count;
    const end = (error: Error | null) => {
      this.#folding = null;
      // A write that forgot to call `finish` is a bug, which a power cut would have turned into damage.
      const isWritten = this.#written.get()?.count !== before;
      if (error || isWritten) reject(error ?? new Error("the log was written while it was folded"));
      else resolve();
    };
    const folding = { database: false, done, end };
    this.#folding = folding;
    // Also what is no change of a row has to be on the disk before it is copied, such as pages that were moved.
    this.#log.sync((error) => {
      if (this.#folding !== folding) return;
      if (error || !this.#copies()) return end(error);
      folding.database = true;
      this.#database.sync((failure) => {
        if (this.#folding === folding) end(failure);
      });
    });
    return done;
  }

  /** Before a write that does not wait for `begin`. @throws Error when the disk fails */
  finish(): void {
    if (!this.#folding) return;
    const error = this.#folding.database ? this.#database.syncNow() : null;
    // Who waits for it is told, and here it is thrown.
    this.#folding.done.catch(() => {});
    this.#folding.end(error);
    if (error) throw error;
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    this.finish();
  }

  #unfolded(): number {
    const { log = 0, checkpointed = 0 } = this.#pages.get() ?? {};
    return log - checkpointed;
  }

  /** False where that fails, as on a full disk: the log has it all, and it is tried again when that has grown. */
  #copies(): boolean {
    this.#db.run("PRAGMA synchronous = OFF");
    try {
      this.#copy.get();
      return true;
    } catch {
      return false;
    } finally {
      this.#db.run("PRAGMA synchronous = NORMAL");
      this.#maxPages = this.#unfolded() === 0 ? MAX_PAGES : this.#maxPages + MAX_PAGES;
    }
  }
}
