import { existsSync } from "node:fs";
import { basename } from "node:path";
import { closeFd, fdIdentity } from "../lib/libc.ts";
import { descendantsOf, isRunning, killProcess, placeOf, processStartTime } from "../lib/proc.ts";
import { type KnownProcess, processEnds } from "../lib/process-ends.ts";
import { lookAtProcesses, ProcessLook } from "../lib/process-look.ts";
import { removeTree } from "../lib/remove-tree.ts";
import { killGroup, removeGroup } from "./cgroup.ts";
import { claimEnd, moveToTrash } from "./directory.ts";
import type { SandboxHandle } from "./sandbox.ts";

export type EndReport = {
  /** No process, mount, socket, cgroup or folder of the sandbox is left (its files may still be in the trash). */
  clean: boolean;
  /** Host pids that could not be killed in time (uninterruptible sleep). */
  survivors: number[];
  /** Resolves when its files are deleted; rejects where that failed. */
  removed: Promise<void>;
};

/** Thousands of processes and their files take seconds to end on a busy node. */
const KILL_MS = 8000;
/** So long only the processes that are known are looked at, which is cheap. */
const KNOWN_MS = 200;
const OTHER_ENDER_MS = 10_000;

/**
 * Kills everything in the sandbox, now and without waiting. Works from any thread, any number of times,
 * and never hits a process that was given an old number.
 */
export function killSandbox(handle: SandboxHandle): void {
  killKnown(handle);
  for (const pid of sessionMembers(handle, new ProcessLook())) killProcess(pid);
}

type Killed = {
  /** Who was killed beside PID 1, because nothing makes them end before it. */
  followers: KnownProcess[];
  /** Bubblewrap's second process, which ends with PID 1, but later: it is the last that has the mounts. */
  between: KnownProcess[];
};

/** What is inside follows its PID 1; only helpers of the starter's may be left. */
function killKnown(handle: SandboxHandle): Killed {
  const { holderPid, holderStartTime, starterPid, starterStartTime, cgroup } = handle;
  const holder = placeOf(holderPid);
  const isHolder = holder?.startTime === holderStartTime;
  const followers = isHolder ? killHolder(handle) : [];
  if (isRunning(starterPid, starterStartTime)) killProcess(starterPid);
  if (cgroup) killGroup(cgroup);
  return { followers, between: isHolder ? goBetween(holder.parent, starterPid) : [] };
}

/** One that has ended already is nobody to wait for. */
function goBetween(parent: number, starterPid: number): KnownProcess[] {
  // The parent may also be the starter, or this process.
  if (parent === starterPid) return [];
  const place = placeOf(parent);
  return place?.session === starterPid ? [{ pid: parent, startTime: place.startTime }] : [];
}

function killHolder(handle: SandboxHandle): KnownProcess[] {
  const followers: KnownProcess[] = [];
  // Without a PID namespace the children don't follow. The supervisor inherits every orphan, so that
  // it goes last and rounds reach all. Stopped, it reports none of it as the commands' own end.
  if (handle.driver === "host") {
    killProcess(handle.holderPid, "SIGSTOP");
    for (let round = 0; round < 20; round++) {
      const left = descendantsOf(handle.holderPid).flatMap((pid) => {
        const startTime = processStartTime(pid);
        return startTime !== null && killProcess(pid) ? [{ pid, startTime }] : [];
      });
      if (left.length === 0) break;
      followers.push(...left);
    }
  }
  killProcess(handle.holderPid);
  return followers;
}

/** While a session has members the kernel does not give its number to a new process. */
function sessionMembers(
  { starterPid, starterStartTime }: SandboxHandle,
  look: ProcessLook,
): number[] {
  const members = starterPid <= 0 ? [] : look.inSession(starterPid);
  if (members.length === 0) return [];
  const now = processStartTime(starterPid);
  if (now !== null && now !== starterStartTime) return [];
  return members;
}

/**
 * Ends a sandbox and proves it: no process, no mount, no socket, no folder. Works from any thread; when
 * several end it at once, one does the work and the others wait. Does not throw for what it can't kill.
 */
export async function endSandbox(handle: SandboxHandle): Promise<EndReport> {
  const { followers, between } = killKnown(handle);
  if (!claimEnd(handle.dir)) return await endedByOther(handle);
  // The number could be given again at once, so only the claimant closes, and only what was ours.
  if (handle.controlFd >= 0 && fdIdentity(handle.controlFd) === handle.controlSocket) {
    closeFd(handle.controlFd);
  }
  const survivors = await killRest(handle, followers, between);
  const { cgroup } = handle;
  const groupGone = cgroup === undefined || (await until(KILL_MS, () => removeGroup(cgroup)));
  const trash = moveToTrash(handle.dir);
  const removed = trash === null ? Promise.resolve() : removeInTurn(trash);
  const clean = survivors.length === 0 && groupGone;
  // Who could not be killed may still have files of the image open.
  if (clean) dropImageLock(handle);
  return { clean, survivors, removed };
}

let lastRemoval: Promise<void> = Promise.resolve();

/** One after another: the ends that are under way need the processor more. */
function removeInTurn(path: string): Promise<void> {
  const removed = lastRemoval.then(() => removeTree(path));
  // Nobody has to look: what stays is removed at the next start of the service.
  lastRemoval = removed.catch(() => {});
  return removed;
}

/**
 * Kills who is left of what `killKnown` was called for.
 *
 * @returns who could not be killed
 */
async function killRest(
  handle: SandboxHandle,
  followers: KnownProcess[],
  between: KnownProcess[],
): Promise<number[]> {
  const stopMs = performance.now() + KILL_MS;
  // The proof reads all of /proc. While those die who are known it would say only that they do.
  let haveEnded = await processEnds([...knownOf(handle), ...between], KNOWN_MS);
  for (;;) {
    if (!haveEnded) followers.push(...killKnown(handle).followers);
    const left = await remaining(handle, followers);
    if (left.length === 0 || performance.now() > stopMs) return left;
    for (const pid of left) if (pid !== handle.holderPid) killProcess(pid);
    await processEnds(left.flatMap(known), KNOWN_MS);
    haveEnded = false;
  }
}

function known(pid: number): KnownProcess[] {
  const startTime = processStartTime(pid);
  return startTime === null ? [] : [{ pid, startTime }];
}

/** Lets its image be removed, though it may run. */
export function dropImageLock(handle: SandboxHandle): void {
  const { imageLock } = handle;
  if (imageLock && fdIdentity(imageLock.fd) === imageLock.file) closeFd(imageLock.fd);
  delete handle.imageLock;
}

async function endedByOther(handle: SandboxHandle): Promise<EndReport> {
  const gone = await until(OTHER_ENDER_MS, () => !existsSync(handle.dir));
  const survivors = await remaining(handle, []);
  return { clean: gone && survivors.length === 0, survivors, removed: Promise.resolve() };
}

/** The kernel lets PID 1 go only after everyone in its PID namespace, so that a payload can't hide. */
function knownOf(handle: SandboxHandle): KnownProcess[] {
  return [
    { pid: handle.holderPid, startTime: handle.holderStartTime },
    { pid: handle.starterPid, startTime: handle.starterStartTime },
  ];
}

/** PID 1, who was killed beside it, the starter's session, and who has our folders mounted: a helper that the starter let go. */
async function remaining(handle: SandboxHandle, followers: KnownProcess[]): Promise<number[]> {
  const look = await lookAtProcesses();
  const following = followers.filter(({ pid, startTime }) => isRunning(pid, startTime));
  const { holderPid, holderStartTime } = handle;
  const holder = look.sees(holderPid) && isRunning(holderPid, holderStartTime) ? [holderPid] : [];
  const mounting = look.mounting(basename(handle.dir));
  const outside = following.map(({ pid }) => pid);
  return [...new Set([...holder, ...outside, ...sessionMembers(handle, look), ...mounting])];
}

/** Short waits first: most ends take a few milliseconds, and nobody is told when they are over. */
async function until(
  limitMs: number,
  condition: () => boolean | Promise<boolean>,
): Promise<boolean> {
  const stop = performance.now() + limitMs;
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 1.5, 50)) {
    if (await condition()) return true;
    if (performance.now() > stop) return false;
    await Bun.sleep(waitMs);
  }
}
