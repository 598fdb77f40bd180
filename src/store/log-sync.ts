import type { Database } from "bun:sqlite";
import { closeSync, fdatasync, openSync } from "node:fs";

/** As `fdatasync` of Node: asks the disk for a file, off this thread. */
export type SyncFile = (fd: number, done: (error: Error | null) => void) => void;

/**
 * Brings SQLite's log to the disk without holding up the thread that writes it.
 *
 * With `synchronous = FULL` a commit in WAL mode writes its frames and then calls fdatasync on the log; NORMAL
 * leaves out that one call and nothing else (the log is still synced before a checkpoint, the database after it,
 * and the log's header when it begins anew). Here the same call is made on the same file a little later, by
 * another thread, and whoever shows something to the world waits for it in `durable`. One call takes along
 * all that was committed before it began, so many commits share the disk's time.
 */
export class LogSync implements Disposable {
  readonly #db: Database;
  readonly #written;
  readonly #fd: number;
  readonly #syncFile: SyncFile;
  /** Counts of changes: SQLite's own, so that no write is missed, whoever made it. */
  #synced: number;
  #running: { upTo: number; done: Promise<void> } | null = null;
  #next: Promise<void> | null = null;
  #disposed = false;

  /** @param logPath of a database that is open, in WAL mode, and synced as it is */
  constructor(db: Database, logPath: string, syncFile: SyncFile = fdatasync) {
    this.#db = db;
    this.#syncFile = syncFile;
    this.#written = db.query<{ count: number }, []>("SELECT total_changes() AS count");
    this.#synced = this.#count();
    // Only the database file itself must not be opened a second time: closing it would drop SQLite's lock.
    this.#fd = openSync(logPath, "r");
    db.run("PRAGMA synchronous = NORMAL");
  }

  /**
   * Resolves when all that is committed now is on the disk; null where it is already. After a call that failed it
   * rejects for good: nobody can tell what the kernel has dropped.
   */
  durable(): Promise<void> | null {
    const written = this.#count();
    if (written === this.#synced) return null;
    if (this.#running === null) return this.#begin(written);
    if (this.#running.upTo === written) return this.#running.done;
    this.#next ??= this.#running.done.then(() => {
      this.#next = null;
      return this.durable() ?? undefined;
    });
    return this.#next;
  }

  get running(): Promise<void> | null {
    return this.#running?.done ?? null;
  }

  /** From here on commits are synced by SQLite again. */
  [Symbol.dispose](): void {
    this.#disposed = true;
    this.#db.run("PRAGMA synchronous = FULL");
    if (this.#running === null) closeSync(this.#fd);
  }

  #count(): number {
    return this.#written.get()?.count ?? 0;
  }

  #begin(upTo: number): Promise<void> {
    const done = new Promise<void>((resolve, reject) => {
      this.#syncFile(this.#fd, (error) => {
        if (this.#disposed) closeSync(this.#fd);
        if (error) return reject(error);
        this.#synced = upTo;
        this.#running = null;
        resolve();
      });
    });
    this.#running = { upTo, done };
    return done;
  }
}
