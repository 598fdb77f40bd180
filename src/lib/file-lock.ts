import { closeSync, constants, openSync } from "node:fs";
import { flock } from "./libc.ts";

/** Never through a link, and without waiting for the reader of a fifo. */
const FLAGS = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;

/**
 * A lock between processes, and between threads: each `FileLock` is a holder of its own. It ends with the
 * process, however that ends; the file stays, because a file that is deleted could be locked twice.
 */
export class FileLock implements Disposable {
  readonly path: string;
  #fd: number;

  constructor(path: string) {
    this.path = path;
    this.#fd = openSync(path, FLAGS, 0o600);
  }

  /** For a child that is to hold the lock too, as long as it runs. */
  get fd(): number {
    return this.#fd;
  }

  /** Without waiting. On failure a lock that was held is given up. */
  tryShared(): boolean {
    return flock(this.#fd, "shared");
  }

  tryExclusive(): boolean {
    return flock(this.#fd, "exclusive");
  }

  /** Also where a child still has the descriptor. */
  unlock(): void {
    flock(this.#fd, "none");
  }

  /** Leaves the descriptor, and with it the lock, to the caller. */
  detach(): number {
    const fd = this.#fd;
    this.#fd = -1;
    return fd;
  }

  [Symbol.dispose](): void {
    if (this.#fd >= 0) closeSync(this.detach());
  }
}
