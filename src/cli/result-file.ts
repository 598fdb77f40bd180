import {
  closeSync,
  constants,
  existsSync,
  fchmodSync,
  fstatSync,
  fsyncSync,
  ftruncateSync,
  openSync,
  readSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from "node:fs";
import { resolve } from "node:path";
import { ServiceError } from "../errors.ts";
import { abortable } from "../lib/abortable.ts";
import { flock } from "../lib/libc.ts";
import { complement, copy, type Span } from "./file-spans.ts";
import {
  lookAtResults,
  NULL_DEVICE,
  type OpenOptions,
  openResults,
  refusal,
} from "./open-results.ts";

type Options = OpenOptions & {
  /** The lines go to standard output too. */
  echo: boolean;
  /** Between two looks whether a full disk has room again. */
  retryMs?: number;
  /** A disk that stays full as long fails the run. */
  patienceMs?: number;
};

/** The disk, or what the user may have of it, is used up. */
const FULL = ["ENOSPC", "EDQUOT"];

/**
 * The file of a run's results, one JSON line each, on the disk as they come. A run that is killed, fills the disk or is
 * started twice takes no line away that was there before.
 */
export class ResultFile implements Disposable {
  readonly path: string;
  lines = 0;
  readonly #options: Options;
  readonly #created: boolean;
  #fd: number;
  /** Up to the end of the last whole line. */
  #size: number;
  #locked = false;

  /** @throws UsageError for a file that can't take the results, before any work is done */
  constructor(path: string, options: Options) {
    this.path = resolve(path);
    this.#options = options;
    const there = lookAtResults(this.path, options);
    this.#created = there === null;
    this.#fd = openResults(this.path, options);
    try {
      this.#size = fstatSync(this.#fd).size;
      this.#lock();
      if (options.mode === "new" && this.#size > 0) {
        const goOn = options.resumable ? `go on with it by --resume ${path}, ` : "";
        const mend = `${goOn}replace it by --force, or name another file`;
        throw refusal(this.path, this.#options, `holds results or something else already; ${mend}`);
      }
      this.#proveRoom();
    } catch (error) {
      this[Symbol.dispose]();
      throw error;
    }
  }

  /** The descriptor, for reading what an earlier run left. */
  get fd(): number {
    return this.#fd;
  }

  /** From here on lines may come. @param keep bytes that stay, and lines in them */
  begin(keep: { bytes: number; lines: number } = { bytes: 0, lines: 0 }): void {
    this.#size = this.#options.mode === "resume" ? keep.bytes : 0;
    this.lines = keep.lines;
    if (this.path !== NULL_DEVICE) ftruncateSync(this.#fd, this.#size);
    if (this.#size === 0 || this.#ends("\n")) return;
    this.#write("\n");
  }

  /**
   * Adds a line, and waits where the disk is full. What was written stays whole meanwhile.
   * @throws ServiceError `disk_full`, or the reason of `signal`
   */
  async add(result: unknown, signal?: AbortSignal): Promise<Span> {
    const line = `${JSON.stringify(result)}\n`;
    const start = this.#size;
    const { retryMs = 1_000, patienceMs = 3_600_000, echo } = this.#options;
    const endMs = performance.now() + patienceMs;
    for (let told = false; ; told = true) {
      try {
        this.#keepLinked();
        this.#write(line);
        break;
      } catch (error) {
        const isOver = performance.now() >= endMs || signal?.aborted;
        if (!FULL.includes((error as NodeJS.ErrnoException).code ?? "") || isOver) {
          throw this.#failure(error);
        }
        if (!told) {
          process.stderr.write(
            `\nrolloutd run: no room for ${this.path}; results wait for it, up to ${Math.round(patienceMs / 60_000)} minutes\n`,
          );
        }
        await abortable(Bun.sleep(retryMs), signal ?? new AbortController().signal).catch(() => {});
      }
    }
    this.lines++;
    if (echo) process.stdout.write(line);
    return { start, end: this.#size };
  }

  /**
   * Has all of it on the disk, without the lines that later ones stand for. A file that can't be made anew keeps those.
   * @throws ServiceError `disk_full`
   */
  finish(superseded: Span[] = []): void {
    if (this.path === NULL_DEVICE) return;
    try {
      fsyncSync(this.#fd);
    } catch (error) {
      throw this.#failure(error);
    }
    if (superseded.length === 0 || !this.#locked || fstatSync(this.#fd).nlink !== 1) return;
    if (this.#rewrite(superseded)) this.lines -= superseded.length;
  }

  [Symbol.dispose](): void {
    if (this.#fd < 0) return;
    const isUnused = this.#created && this.path !== NULL_DEVICE && this.lines === 0;
    if (isUnused && fstatSync(this.#fd).size === 0) rmSync(this.path, { force: true });
    closeSync(this.#fd);
    this.#fd = -1;
  }

  /** Two runs would write the same results twice. Some shared file systems have no locks; lines stay whole there too. */
  #lock(): void {
    if (this.path === NULL_DEVICE) return;
    try {
      this.#locked = flock(this.#fd, "exclusive");
    } catch {
      process.stderr.write(`rolloutd run: ${this.path} can't be locked: let no other run use it\n`);
      return;
    }
    const isThisFile =
      statSync(this.path, { throwIfNoEntry: false })?.ino === fstatSync(this.#fd).ino;
    if (this.#locked && isThisFile) return;
    throw refusal(
      this.path,
      this.#options,
      "is another run's, which still writes to it; wait for its end, or name another file",
    );
  }

  /** On a full disk, or beyond a quota, a file can be made and not filled. */
  #proveRoom(): void {
    if (this.path === NULL_DEVICE) return;
    try {
      this.#write(" ");
      this.#size -= 1;
      ftruncateSync(this.#fd, this.#size);
    } catch (error) {
      throw refusal(
        this.path,
        this.#options,
        `can't be written: ${(error as Error).message}; name a file on another disk`,
      );
    }
  }

  #ends(text: string): boolean {
    const last = Buffer.alloc(text.length);
    readSync(this.#fd, last, 0, last.length, this.#size - last.length);
    return last.toString() === text;
  }

  /** All of it, or nothing. */
  #write(text: string): void {
    const bytes = Buffer.from(text);
    try {
      for (let at = 0; at < bytes.length; ) at += writeSync(this.#fd, bytes, at);
    } catch (error) {
      if (this.path !== NULL_DEVICE) ftruncateSync(this.#fd, this.#size);
      throw error;
    }
    this.#size += bytes.length;
  }

  /** A file that somebody removes meanwhile would take with it what is yet to come; it is made again, with all it had. */
  #keepLinked(): void {
    if (this.path === NULL_DEVICE || fstatSync(this.#fd).nlink > 0) return;
    const path = existsSync(this.path) ? `${this.path}.${process.pid}` : this.path;
    const fresh = openSync(path, constants.O_RDWR | constants.O_CREAT | constants.O_APPEND, 0o666);
    copy(this.#fd, fresh, [{ start: 0, end: this.#size }]);
    closeSync(this.#fd);
    this.#fd = fresh;
    this.#locked = flock(fresh, "exclusive");
    process.stderr.write(`\nrolloutd run: ${this.path} was removed; ${path} has the results\n`);
  }

  #rewrite(superseded: Span[]): boolean {
    const path = realpathSync(this.path);
    const fresh = `${path}.${process.pid}.part`;
    let fd = -1;
    try {
      fd = openSync(fresh, "ax+", 0o600);
      copy(this.#fd, fd, complement(superseded, this.#size));
      fchmodSync(fd, fstatSync(this.#fd).mode & 0o7777);
      fsyncSync(fd);
      renameSync(fresh, path);
    } catch {
      if (fd >= 0) closeSync(fd);
      rmSync(fresh, { force: true });
      return false;
    }
    closeSync(this.#fd);
    this.#fd = fd;
    this.#size = fstatSync(fd).size;
    return true;
  }

  #failure(cause: unknown): ServiceError {
    const message = `results can't be written to ${this.path}: ${(cause as Error).message}`;
    const mend = `make room there, and go on with --resume ${this.path}`;
    return new ServiceError("disk_full", message, { mend, cause });
  }
}
