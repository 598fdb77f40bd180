import { existsSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** What one tick writes at most, besides the trajectories it was told of. Units: bytes. */
const TICK_BYTES = 4 * 1024 * 1024;
/** Many requests may ask in one turn of the event loop; for new work a look that is as old is new enough. */
const FRESH_MS = 5;
/** How often it is looked whether the ballast can be taken on again. */
const TEND_MS = 1000;

export type DiskLimits = {
  /** Free space below which no new work is taken. */
  floorBytes: number;
  /** Size of the file that is given up so that running work can still be booked. */
  ballastBytes: number;
};

/**
 * Whether the disk has room, asked before anything is written: a write that fails half-way would cost what is
 * running. When the floor is reached new work is refused; when even the end of running work has no
 * room, the ballast goes, and after that ends wait until there is space again.
 */
export class DiskRoom implements Disposable {
  readonly #freeBytes: () => number;
  readonly #ballast: string;
  readonly #limits: DiskLimits;
  readonly #onChange: (state: "ballast_dropped" | "ballast_taken") => void;
  readonly #timer: Timer;
  readonly #freshMs: number;
  #looked = { bytes: 0, atMs: Number.NEGATIVE_INFINITY };

  /** Made before the database is opened, because opening it writes as well. */
  constructor(
    folder: string,
    limits: DiskLimits,
    onChange: (state: "ballast_dropped" | "ballast_taken") => void,
    freeBytes: () => number = () => freeBytesOf(folder),
    freshMs = FRESH_MS,
  ) {
    this.#freeBytes = freeBytes;
    this.#freshMs = freshMs;
    this.#ballast = join(folder, "ballast");
    this.#limits = limits;
    this.#onChange = onChange;
    this.forTick(0);
    this.#tend();
    // A start that is refused must end all the same.
    this.#timer = setInterval(() => this.#tend(), TEND_MS).unref();
  }

  /** Room for new work. */
  forWork(): boolean {
    const nowMs = performance.now();
    if (nowMs - this.#looked.atMs >= this.#freshMs) {
      this.#looked = { bytes: this.#freeBytes(), atMs: nowMs };
    }
    return this.#looked.bytes >= this.#limits.floorBytes;
  }

  /** Room to book what has happened. Drops the ballast for it. */
  forTick(bytes: number): boolean {
    const needed = TICK_BYTES + bytes;
    if (this.#freeBytes() >= needed) return true;
    if (!existsSync(this.#ballast)) return false;
    rmSync(this.#ballast);
    this.#onChange("ballast_dropped");
    return this.#freeBytes() >= needed;
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #tend(): void {
    const { ballastBytes, floorBytes } = this.#limits;
    const there = statSync(this.#ballast, { throwIfNoEntry: false });
    if (there?.size === ballastBytes) return;
    if (this.#freeBytes() < floorBytes + 2 * ballastBytes) return;
    try {
      writeFileSync(this.#ballast, Buffer.alloc(ballastBytes, 1), { mode: 0o600 });
      this.#onChange("ballast_taken");
    } catch {
      // Somebody else took the space meanwhile; half a ballast is none.
      rmSync(this.#ballast, { force: true });
    }
  }
}

function freeBytesOf(folder: string): number {
  const { bavail, bsize } = statfsSync(folder);
  return bavail * bsize;
}
