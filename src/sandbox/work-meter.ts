import { cpuTimesOf, descendantsOf, type TaskTimes, tasksOf } from "../lib/proc.ts";
import type { SandboxHandle } from "./sandbox.ts";

/** What the processes of a sandbox had of their time. Units: milliseconds. */
export type WorkTimes = {
  wallMs: number;
  /** Of the processor, all processes together. */
  cpuMs: number;
  /** The part of the wall time in which the node kept them waiting: for a processor, or for a disk. */
  waitedMs: number;
};

/** A task that is new since the last look, could run, and has run less, still waits to begin. */
const MIN_SEEN_MS = 2;

/** A look that comes so much later than it should says that this thread was kept waiting, and what it serves too. */
const LATE = 1.5;

type Seen = TaskTimes & {
  /** Waiting that is credited already, and that the kernel will count once the task runs. */
  pendingMs: number;
};

/**
 * Tells apart what the work in a sandbox does with its time and what a busy node does to it: time on a processor, time in
 * which a thread could have run but none of the processors was free for it, and the rest, in which the work itself
 * sleeps. The first is limited as such. The rest counts against the limit of work that hangs. The waiting counts for
 * neither, so that no limit depends on what else the node does.
 *
 * The kernel's counters are read from outside of the sandbox, where no process of it can change them.
 */
export class WorkMeter {
  readonly #holderPid: number;
  readonly #blockedAtMostMs: number;
  readonly #beganMs = performance.now();
  readonly #cpuBeforeMs: number;
  readonly #tasks = new Map<number, Seen>();
  /** Of threads that have ended since they were seen, less what there was before. */
  #goneMs = 0;
  #lookedMs = this.#beganMs;
  #cpuMs = 0;
  #waitedMs = 0;
  #blockedMs = 0;

  /** @param blockedAtMostMs for how long tasks beside others may look as if they waited for a disk */
  constructor({ holderPid }: Pick<SandboxHandle, "holderPid">, blockedAtMostMs: number) {
    this.#holderPid = holderPid;
    this.#blockedAtMostMs = blockedAtMostMs;
    this.#cpuBeforeMs = this.#countedMs();
    for (const task of [this.#holderPid, ...this.#pids()].flatMap(tasksOf)) {
      this.#tasks.set(task.tid, { ...task, pendingMs: 0 });
      if (task.tid !== holderPid) this.#goneMs -= task.ranMs;
    }
  }

  /** What there was by now. @param expectedMs since the last look; what is beyond was ours, who looked late. */
  look(expectedMs: number): WorkTimes {
    const nowMs = performance.now();
    const passedMs = nowMs - this.#lookedMs;
    this.#lookedMs = nowMs;
    const tasks = this.#pids().flatMap(tasksOf);
    const [holder] = tasksOf(this.#holderPid);
    // What PID 1 waits the work waits too, for its start, its input or its end.
    const carriedMs = holder ? this.#waitOf(holder, passedMs) : passedMs;
    const ownMs = Math.max(0, ...tasks.map((task) => this.#waitOf(task, passedMs)));
    // Not begun yet, or ended without being noticed.
    const waitedMs = tasks.length === 0 ? passedMs : ownMs + carriedMs;
    const blockedMs = this.#blockOf(tasks, passedMs);
    const lateMs = Math.max(0, passedMs - LATE * expectedMs);
    this.#waitedMs += Math.max(waitedMs, blockedMs, lateMs);
    this.#forget(holder ? [...tasks, holder] : tasks);
    this.#cpuMs = Math.max(this.#cpuMs, this.#countedMs() - this.#cpuBeforeMs, this.#seenMs());
    return this.times(nowMs);
  }

  times(nowMs = performance.now()): WorkTimes {
    const wallMs = nowMs - this.#beganMs;
    return { wallMs, cpuMs: this.#cpuMs, waitedMs: Math.min(wallMs, this.#waitedMs) };
  }

  /**
   * A task in state `D` waits for a disk, as a rule. It may also wait for a child or thread that it has made by `vfork`, as
   * long as that likes: unless it is the only one, its waiting counts so long and no longer.
   */
  #blockOf(tasks: TaskTimes[], passedMs: number): number {
    if (!tasks.some(({ state }) => state === "D")) return 0;
    if (tasks.length === 1) return passedMs;
    const blockedMs = Math.min(passedMs, this.#blockedAtMostMs - this.#blockedMs);
    this.#blockedMs += blockedMs;
    return blockedMs;
  }

  /** How long a task was kept waiting since the last look, as far as that is not credited yet. */
  #waitOf(task: TaskTimes, passedMs: number): number {
    const seen = this.#tasks.get(task.tid);
    const { ranMs, waitedMs } = task;
    let creditMs = 0;
    let pendingMs = 0;
    if (!seen) {
      const hadMs = ranMs + waitedMs;
      const share = hadMs < MIN_SEEN_MS ? Number(task.state === "R") : waitedMs / hadMs;
      creditMs = share * passedMs;
    } else if (task.state === "R" && ranMs === seen.ranMs && waitedMs === seen.waitedMs) {
      // The kernel counts a wait when it is over.
      creditMs = passedMs;
      pendingMs = seen.pendingMs + passedMs;
    } else creditMs = Math.max(0, waitedMs - seen.waitedMs - seen.pendingMs);
    this.#tasks.set(task.tid, { ...task, pendingMs });
    return creditMs;
  }

  #forget(tasks: TaskTimes[]): void {
    const living = new Set(tasks.map(({ tid }) => tid));
    for (const [tid, { ranMs }] of this.#tasks) {
      if (living.has(tid)) continue;
      this.#goneMs += ranMs;
      this.#tasks.delete(tid);
    }
  }

  #pids(): number[] {
    return descendantsOf(this.#holderPid);
  }

  /** As the kernel adds up: what processes used themselves, and those that they waited for. */
  #countedMs(): number {
    let sum = cpuTimesOf(this.#holderPid)?.waitedFor ?? 0;
    for (const pid of this.#pids()) {
      const times = cpuTimesOf(pid);
      if (times) sum += times.own + times.waitedFor;
    }
    return sum;
  }

  /** What was seen of each thread, also of a process for which nobody waited and which the kernel's sum leaves out. */
  #seenMs(): number {
    let sum = this.#goneMs;
    for (const [tid, { ranMs }] of this.#tasks) if (tid !== this.#holderPid) sum += ranMs;
    return sum;
  }
}
