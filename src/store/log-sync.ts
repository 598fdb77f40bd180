import type { Database } from "bun:sqlite";
import type { DiskFile } from "./disk-file.ts";

/**
 * Brings SQLite's log to the disk without holding up the thread that writes it.
 *
 * With `synchronous = FULL` a commit in WAL mode writes its frames and then calls fdatasync on the log; NORMAL
 * leaves out that one call and nothing else (the log's header is still synced when it begins anew; for the database
 * see `LogFold`). Here the same call is made on the same file a little later, by another thread, and whoever shows
 * something to the world waits for it in `durable`. One call takes along all that was committed before it began, so
 * many commits share the disk's time.
 */
export class LogSync implements Disposable {
  readonly #db: Database;
  readonly #written;
  readonly #log: DiskFile;
  /** Counts of changes: SQLite's own, so that no write is missed, whoever made it. */
  #synced: number;
  #running: { upTo: number; done: Promise<void> } | null = null;
  #next: Promise<void> | null = null;

  /** @param log of a database that is open, in WAL mode, and synced as it is */
  constructor(db: Database, log: DiskFile) {
    this.#db = db;
    this.#log = log;
    this.#written = db.query<{ count: number }, []>("SELECT total_changes() AS count");
    this.#synced = this.#count();
    db.run("PRAGMA synchronous = NORMAL");
  }

  /**
   * Resolves when all that is committed now is on the disk; null where it is already. After a call that failed it
   * rejects for good: nobody can tell what the kernel has dropped.
   */
  durable(): Promise<void> | null {
    if (this.#log.failed) return Promise.reject(this.#log.failed);
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
    this.#db.run("PRAGMA synchronous = FULL");
  }

  #count(): number {
    return this.#written.get()?.count ?? 0;
  }

  #begin(upTo: number): Promise<void> {
    const { promise: done, resolve, reject } = Promise.withResolvers<void>();
    this.#running = { upTo, done };
    this.#log.sync((error) => {
      if (error) return reject(error);
      this.#synced = upTo;
      this.#running = null;
      resolve();
    });
    return done;
  }
}
