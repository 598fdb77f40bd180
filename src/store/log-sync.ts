import type { Database } from "bun:sqlite";
import { closeSync, fdatasync, fdatasyncSync, openSync } from "node:fs";

/** How the disk is asked for a file. */
export type Disk = {
  /** Off this thread. */
  sync(fd: number, done: (error: Error | null) => void): void;
  /** On this thread. @throws Error */
  syncNow(fd: number): void;
  /** How long `sync` may take before `syncNow` is called as well. */
  patienceMs: number;
};

/** Bun's pool of threads also does what takes seconds, such as removing a large tree. */
const BUN_DISK: Disk = { sync: fdatasync, syncNow: fdatasyncSync, patienceMs: 20 };

/**
 * Brings SQLite's log to the disk without holding up the thread that writes it.
 *
 * With `synchronous = FULL` a commit in WAL mode writes its frames and then calls fdatasync on the log; NORMAL
 * leaves out that one call and nothing else (the log is still synced before a checkpoint, the database after it,
 * and the log's header when it begins anew). Here the same call is made on the same file a little later, by
 * another thread, and whoever shows something to the world waits for it in `durable`. One call takes along
 * all that was committed before it began, so many commits share the disk's time. Where no thread comes to it in time
 * the call is made here, as SQLite would, until one does.
 */
export class LogSync implements Disposable {
  readonly #db: Database;
  readonly #written;
  readonly #disk: Disk;
  /** One for each way, because each descriptor tells of an error by itself. */
  readonly #fds: { later: number; now: number };
  /** Counts of changes: SQLite's own, so that no write is missed, whoever made it. */
  #synced: number;
  #running: { upTo: number; done: Promise<void> } | null = null;
  #next: Promise<void> | null = null;
  /** Whether the thread that was asked has not answered yet. */
  #asked = false;
  #failed: Error | null = null;
  #disposed = false;

  /** @param logPath of a database that is open, in WAL mode, and synced as it is */
  constructor(db: Database, logPath: string, disk: Disk = BUN_DISK) {
    this.#db = db;
    this.#disk = disk;
    this.#written = db.query<{ count: number }, []>("SELECT total_changes() AS count");
    this.#synced = this.#count();
    // Only the database file itself must not be opened a second time: closing it would drop SQLite's lock.
    this.#fds = { later: openSync(logPath, "r"), now: openSync(logPath, "r") };
    db.run("PRAGMA synchronous = NORMAL");
  }

  /**
   * Resolves when all that is committed now is on the disk; null where it is already. After a call that failed it
   * rejects for good: nobody can tell what the kernel has dropped.
   */
  durable(): Promise<void> | null {
    if (this.#failed) return Promise.reject(this.#failed);
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
    closeSync(this.#fds.now);
    if (!this.#asked) closeSync(this.#fds.later);
  }

  #count(): number {
    return this.#written.get()?.count ?? 0;
  }

  #begin(upTo: number): Promise<void> {
    const { promise: done, resolve, reject } = Promise.withResolvers<void>();
    this.#running = { upTo, done };
    let over = false;
    const end = (error: Error | null) => {
      this.#failed ??= error;
      if (over) return;
      over = true;
      clearTimeout(timer);
      if (error) return reject(error);
      this.#synced = upTo;
      this.#running = null;
      resolve();
    };
    const here = () => {
      if (!this.#disposed && !over) end(this.#syncNow());
    };
    let timer: Timer | undefined;
    if (this.#asked) {
      here();
      return done;
    }
    if (this.#disk.patienceMs < Number.POSITIVE_INFINITY) {
      timer = setTimeout(here, this.#disk.patienceMs);
    }
    this.#asked = true;
    this.#disk.sync(this.#fds.later, (error) => {
      this.#asked = false;
      if (this.#disposed) closeSync(this.#fds.later);
      end(error);
    });
    return done;
  }

  #syncNow(): Error | null {
    try {
      this.#disk.syncNow(this.#fds.now);
      return null;
    } catch (error) {
      return error as Error;
    }
  }
}
