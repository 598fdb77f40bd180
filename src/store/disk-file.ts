import { closeSync, fdatasync, fdatasyncSync, openSync } from "node:fs";

/** How the disk is asked for a file. */
export type Disk = {
  /** Off this thread. */
  sync(fd: number, done: (error: Error | null) => void): void;
  /** On this thread. @throws Error */
  syncNow(fd: number): void;
  /** How long `sync` may take before `syncNow` is called as well. Units: milliseconds. */
  patienceMs: number;
};

/** Bun's pool of threads also does what takes seconds, such as removing a large tree. */
const BUN_DISK: Disk = { sync: fdatasync, syncNow: fdatasyncSync, patienceMs: 20 };

/**
 * A file of SQLite's that another thread brings to the disk. Where no thread comes to it in time it is done here, as
 * SQLite would, until one does.
 */
export class DiskFile implements Disposable {
  readonly #disk: Disk;
  /** One for each way, because each descriptor tells of an error by itself. */
  readonly #fds: { later: number; now: number };
  /** Whether the thread that was asked has not answered yet. */
  #asked = false;
  #failed: Error | null = null;
  #disposed = false;

  /** @param path of a file that is there; it is not written here */
  constructor(path: string, disk: Disk = BUN_DISK) {
    this.#disk = disk;
    this.#fds = { later: openSync(path, "r"), now: openSync(path, "r") };
  }

  /** The first call that failed, also one that was told late. Nobody can tell what the kernel has dropped. */
  get failed(): Error | null {
    return this.#failed;
  }

  /** Calls `end` once the disk has all that is in the file now, or can't have it. */
  sync(end: (error: Error | null) => void): void {
    let over = false;
    const settle = (error: Error | null) => {
      this.#failed ??= error;
      if (over) return;
      over = true;
      clearTimeout(timer);
      end(error);
    };
    const here = () => {
      if (!this.#disposed && !over) settle(this.syncNow());
    };
    let timer: Timer | undefined;
    if (this.#asked) {
      here();
      return;
    }
    if (this.#disk.patienceMs < Number.POSITIVE_INFINITY) {
      timer = setTimeout(here, this.#disk.patienceMs);
    }
    this.#asked = true;
    this.#disk.sync(this.#fds.later, (error) => {
      this.#asked = false;
      if (this.#disposed) closeSync(this.#fds.later);
      settle(error);
    });
  }

  /** On this thread. Returns what went wrong. */
  syncNow(): Error | null {
    try {
      this.#disk.syncNow(this.#fds.now);
    } catch (error) {
      this.#failed ??= error as Error;
    }
    return this.#failed;
  }

  [Symbol.dispose](): void {
    this.#disposed = true;
    closeSync(this.#fds.now);
    if (!this.#asked) closeSync(this.#fds.later);
  }
}
