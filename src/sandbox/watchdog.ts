import { statfsSync } from "node:fs";
import { join } from "node:path";
import { type ErrorCode, ServiceError } from "../errors.ts";
import {
  descendantsOf,
  isRunning,
  type ProcessUse,
  processUse,
  proportionalBytes,
} from "../lib/proc.ts";
import { killedForMemory } from "./cgroup.ts";
import { type DiskUse, diskUsage } from "./disk-usage.ts";
import { killSandbox } from "./end.ts";
import { heldFiles } from "./held-files.ts";
import { DESCRIPTOR_BYTES, mappedUse, SOCKET_BYTES, socketBytes } from "./kernel-memory.ts";
import type { SandboxHandle, WatchLimits } from "./sandbox.ts";

/** Nothing fills memory faster, so that the next look comes before what is left can be used up. */
const FASTEST_BYTES_PER_MS = 4_000_000;
const MIN_LOOK_MS = 30;

/** So long it may stand at the limit of processes: a build may touch it, a fork bomb stays. */
const FULL_MS = 1000;

/** So far beyond what the kernel enforces it can only be where it does not, as for root. */
const FAR_ABOVE = 1.2;

const DISK_LOOK_MS = 1000;

/** A disk has one inode for about so many bytes, as ext4 is made: a sandbox gets as many as come with its share. */
const BYTES_PER_FILE = 16_384;

/** Who hides what it has on a disk of which no more is left than this part of a sandbox's share is ended. */
const NEARLY_FULL = 1 / 16;

type Pace = {
  /** Between two looks at the processes, at most. */
  lookMs: number;
  /** The share of time that goes into walking its tree is at most one of so many parts. */
  diskRest: number;
  /** Whether its death is told like a limit. */
  tellsDeath: boolean;
};

const AT_WORK: Pace = { lookMs: 500, diskRest: 10, tellsDeath: false };
/** The main thread watches, which has other things to do, and many sandboxes at once. */
const PARKED: Pace = { lookMs: 500, diskRest: 200, tellsDeath: true };
/** What the sandbox can write on the host's disk. */
const WRITABLE = ["overlay", "io", "home"];

/** The most that was seen of a sandbox. Memory that processes share may be counted for each of them. */
export type Peak = { memoryBytes: number; processes: number };

export type Watch = Disposable & {
  readonly peak: Peak;
  /** Aborted with `oom`, `pids_limit` or `disk_limit` just before the sandbox is killed. */
  readonly crossed: AbortSignal;
};

/**
 * Looks at what a sandbox uses, as long as it is watched, and kills it when it goes beyond `limits`. It
 * needs no rights and so is no wall: between two looks memory can grow by what a process touches meanwhile.
 */
export function watchSandbox(handle: SandboxHandle, limits: WatchLimits): Watch {
  return new Watchdog(handle, limits, AT_WORK).begin();
}

/**
 * The same while no thread is attached, who would hear of its death: `crossed` is then aborted with
 * `sandbox_died`. The first look comes later, since most are parked for a moment only.
 */
export function watchParked(handle: SandboxHandle, limits: WatchLimits): Watch {
  return new Watchdog(handle, limits, PARKED).beginLater();
}

class Watchdog implements Watch {
  readonly #handle: SandboxHandle;
  readonly #limits: WatchLimits;
  readonly #pace: Pace;
  readonly #crossed = new AbortController();
  readonly #timers = new Set<Timer>();
  readonly peak: Peak = { memoryBytes: 0, processes: 0 };
  #fullSinceMs: number | null = null;
  /** In memory that no process need have mapped, and the kernel's own for the sandbox, at the last look at them. */
  #hidden = { shared: 0, kernel: 0 };
  /** What was free on the disk at the last look by which the sandbox hid nothing of what it has there. */
  #freeBytes: number | null = null;
  #ended = false;

  constructor(handle: SandboxHandle, limits: WatchLimits, pace: Pace) {
    this.#handle = handle;
    this.#limits = limits;
    this.#pace = pace;
  }

  begin(): this {
    this.lookAtProcesses();
    this.lookAtDisk();
    return this;
  }

  beginLater(): this {
    this.#later(this.#pace.lookMs, () => this.begin());
    return this;
  }

  get crossed(): AbortSignal {
    return this.#crossed.signal;
  }

  lookAtProcesses(): void {
    if (this.#isOver()) {
      if (this.#pace.tellsDeath)
        this.#abort("sandbox_died", "the sandbox died while its job waited");
      return;
    }
    const { memoryBytes, processes } = this.#limits;
    const { starterPid, holderPid, cgroup, isolation } = this.#handle;
    const killedAt = cgroup === undefined ? null : killedForMemory(cgroup);
    if (killedAt !== null) this.#memoryCrossed(killedAt);
    const pids = [starterPid, ...descendantsOf(starterPid, processes * FAR_ABOVE + 1)];
    const uses = new Map(pids.map((pid) => [pid, processUse(pid)]));
    // The kernel counts the starter's threads as well, but its memory is not the sandbox's.
    this.#checkTasks([...uses.values()]);
    for (const pid of pids.slice(0, pids.indexOf(holderPid))) uses.delete(pid);
    const { shared, kernel } = this.#hidden;
    const sockets = isolation === "A" ? socketBytes(holderPid) : 0;
    const used = memoryOf(uses, shared, kernel + sockets, memoryBytes);
    this.peak.memoryBytes = Math.max(this.peak.memoryBytes, used);
    if (used > memoryBytes) this.#memoryCrossed(used);
    const leftMs = (memoryBytes - used) / FASTEST_BYTES_PER_MS;
    this.#later(Math.min(this.#pace.lookMs, Math.max(MIN_LOOK_MS, leftMs)), () =>
      this.lookAtProcesses(),
    );
  }

  #memoryCrossed(used: number): void {
    this.peak.memoryBytes = Math.max(this.peak.memoryBytes, used);
    this.#end("oom", used, this.#limits.memoryBytes, "bytes of memory");
  }

  #checkTasks(uses: ProcessUse[]): void {
    const { processes } = this.#limits;
    const tasks = uses.reduce((sum, use) => sum + use.tasks, 0);
    this.peak.processes = Math.max(this.peak.processes, tasks);
    const nowMs = performance.now();
    this.#fullSinceMs = tasks < processes ? null : (this.#fullSinceMs ?? nowMs);
    const isStuck = this.#fullSinceMs !== null && nowMs - this.#fullSinceMs >= FULL_MS;
    if (!isStuck && tasks <= processes * FAR_ABOVE) return;
    this.#end("pids_limit", tasks, processes, "processes and threads");
  }

  async lookAtDisk(): Promise<void> {
    const startMs = performance.now();
    const { dir, holderPid } = this.#handle;
    const pids = descendantsOf(holderPid);
    const held = await heldFiles(pids);
    const mapped = await mappedUse(holderPid, pids, dir);
    // With the node's network namespace (level B) nobody tells how many there are.
    const sockets = this.#handle.isolation === "B" ? held.sockets * SOCKET_BYTES : 0;
    const kernel = mapped.tableBytes + held.descriptors * DESCRIPTOR_BYTES + sockets;
    this.#hidden = { shared: mapped.sharedBytes, kernel };
    for await (const use of diskUsage(WRITABLE.map((name) => join(dir, name)))) {
      if (this.#isOver()) return;
      this.#checkDisk({ ...use, bytes: use.bytes + held.disk });
    }
    this.#checkHidden(held.hides || mapped.hides);
    const tookMs = performance.now() - startMs;
    this.#later(Math.max(DISK_LOOK_MS, tookMs * this.#pace.diskRest), () => this.lookAtDisk());
  }

  #checkDisk({ bytes, files, hides }: DiskUse): void {
    const { diskBytes } = this.#limits;
    if (bytes > diskBytes) this.#end("disk_limit", bytes, diskBytes, "bytes on disk");
    const mostFiles = Math.ceil(diskBytes / BYTES_PER_FILE);
    if (files > mostFiles) this.#end("disk_limit", files, mostFiles, "files on disk");
    if (!hides) return;
    if (this.#freeOnDisk() > diskBytes * NEARLY_FULL) return;
    this.#endHiding(
      "the disk is nearly full, and the sandbox has folders that can't be looked into",
    );
  }

  /** What nobody can see may be all that the disk has lost meanwhile. */
  #checkHidden(hides: boolean): void {
    if (this.#isOver()) return;
    const { diskBytes } = this.#limits;
    const free = this.#freeOnDisk();
    if (!hides || this.#freeBytes === null) this.#freeBytes = free;
    if (!hides) return;
    if (this.#freeBytes - free <= diskBytes && free > diskBytes * NEARLY_FULL) return;
    const lost = this.#freeBytes - free;
    this.#endHiding(
      `the sandbox hides open files, and the disk has lost ${lost} bytes since, of which it may have ${diskBytes}`,
    );
  }

  #freeOnDisk(): number {
    const { bavail, bsize } = statfsSync(this.#handle.dir);
    return bavail * bsize;
  }

  #endHiding(message: string): void {
    this.#abort("disk_limit", message);
    killSandbox(this.#handle);
  }

  [Symbol.dispose](): void {
    this.#ended = true;
    for (const timer of this.#timers) clearTimeout(timer);
  }

  #isOver(): boolean {
    const { holderPid, holderStartTime } = this.#handle;
    return this.#ended || !isRunning(holderPid, holderStartTime);
  }

  /** The reason first: what waits for the sandbox must not learn of its death before. */
  #end(code: ErrorCode, used: number, limit: number, what: string): void {
    if (this.#ended) return;
    this.#abort(code, `the sandbox had ${used} ${what}, and may have ${limit}`);
    killSandbox(this.#handle);
  }

  #abort(code: ErrorCode, message: string): void {
    if (this.#ended) return;
    this[Symbol.dispose]();
    this.#crossed.abort(new ServiceError(code, message));
  }

  #later(ms: number, look: () => void): void {
    if (this.#ended) return;
    const timer = setTimeout(() => {
      this.#timers.delete(timer);
      look();
    }, ms);
    this.#timers.add(timer);
  }
}

/**
 * The cheap sum counts what is shared once for each: only where it is too much the exact one is taken.
 * @param shared bytes of memory that may be mapped as well
 * @param kernel bytes that are the kernel's
 */
function memoryOf(
  uses: Map<number, ProcessUse>,
  shared: number,
  kernel: number,
  limit: number,
): number {
  let other = kernel;
  let resident = 0;
  for (const use of uses.values()) {
    other += use.otherBytes;
    resident += use.residentBytes;
  }
  if (resident + shared + other <= limit) return resident + shared + other;
  let all = 0;
  let shmem = 0;
  for (const pid of uses.keys()) {
    // Again, where there is no exact one: the process may have ended since, and shared all that it had.
    const exact = proportionalBytes(pid) ?? { all: processUse(pid).residentBytes, shmem: 0 };
    all += exact.all;
    shmem += exact.shmem;
  }
  return all - shmem + Math.max(shmem, shared) + other;
}
