import { closeSync, existsSync, openSync } from "node:fs";
import { basename, join } from "node:path";
import { closeFd, fdIdentity } from "../lib/libc.ts";
import {
  descendantsOf,
  isRunning,
  killProcess,
  processesInSession,
  processesMounting,
  processStartTime,
} from "../lib/proc.ts";
import { removeTree } from "../lib/remove-tree.ts";
import { killGroup, removeGroup } from "./cgroup.ts";
import { ENDED_FILE, moveToTrash } from "./directory.ts";
import type { SandboxHandle } from "./sandbox.ts";

export type EndReport = {
  /** No process, mount, socket, cgroup or folder of the sandbox is left (its files may still be in the trash). */
  clean: boolean;
  /** Host pids that could not be killed in time (uninterruptible sleep). */
  survivors: number[];
  /** Resolves when its files are deleted; rejects where that failed. */
  removed: Promise<void>;
};

const KILL_MS = 2000;
const OTHER_ENDER_MS = 10_000;

/**
 * Kills everything in the sandbox, now and without waiting. Works from any thread, any number of times,
 * and never hits a process that was given an old number.
 */
export function killSandbox(handle: SandboxHandle): void {
  killHolder(handle);
  killSession(handle);
  if (handle.cgroup) killGroup(handle.cgroup);
}

function killHolder(handle: SandboxHandle): void {
  if (!isRunning(handle.holderPid, handle.holderStartTime)) return;
  // Without a PID namespace the children don't follow. The supervisor inherits every orphan, so that
  // it goes last and rounds reach all. Stopped, it reports none of it as the commands' own end.
  if (handle.driver === "host") {
    killProcess(handle.holderPid, "SIGSTOP");
    for (let round = 0; round < 20; round++) {
      const left = descendantsOf(handle.holderPid);
      if (left.filter((pid) => processStartTime(pid) !== null && killProcess(pid)).length === 0)
        break;
    }
  }
  killProcess(handle.holderPid);
}

/** While a session has members the kernel does not give its number to a new process. */
function sessionMembers({ starterPid, starterStartTime }: SandboxHandle): number[] {
  if (starterPid <= 0) return [];
  const now = processStartTime(starterPid);
  if (now !== null && now !== starterStartTime) return [];
  return processesInSession(starterPid);
}

function killSession(handle: SandboxHandle): void {
  for (const pid of sessionMembers(handle)) killProcess(pid);
}

/**
 * Ends a sandbox and proves it: no process, no mount, no socket, no folder. Works from any thread; when
 * several end it at once, one does the work and the others wait. Does not throw for what it can't kill.
 */
export async function endSandbox(
  handle: SandboxHandle,
  options: { graceMs: number },
): Promise<EndReport> {
  if (options.graceMs > 0) await askToEnd(handle, options.graceMs);
  killSandbox(handle);
  if (!claim(handle)) return await endedByOther(handle);
  // The number could be given again at once, so only the claimant closes, and only what was ours.
  if (handle.controlFd >= 0 && fdIdentity(handle.controlFd) === handle.controlSocket) {
    closeFd(handle.controlFd);
  }
  const name = basename(handle.dir);
  await until(KILL_MS, () => {
    killSandbox(handle);
    return remaining(handle).length === 0;
  });
  // Outside of the PID namespace and of the session there may be a helper that the starter let go.
  await until(
    KILL_MS,
    () => processesMounting(name).filter((pid) => killProcess(pid)).length === 0,
  );
  const { cgroup } = handle;
  const groupGone = cgroup === undefined || (await until(KILL_MS, () => removeGroup(cgroup)));
  const trash = moveToTrash(handle.dir);
  const removed = trash === null ? Promise.resolve() : removeTree(trash);
  // Nobody has to look: what stays is removed at the next start of the service.
  removed.catch(() => {});
  const survivors = [...new Set([...remaining(handle), ...processesMounting(name)])];
  const clean = survivors.length === 0 && groupGone;
  // Who could not be killed may still have files of the image open.
  if (clean) dropImageLock(handle);
  return { clean, survivors, removed };
}

/** Lets its image be removed, though it may run. */
export function dropImageLock(handle: SandboxHandle): void {
  const { imageLock } = handle;
  if (imageLock && fdIdentity(imageLock.fd) === imageLock.file) closeFd(imageLock.fd);
  delete handle.imageLock;
}

async function askToEnd(handle: SandboxHandle, graceMs: number): Promise<void> {
  if (!isRunning(handle.holderPid, handle.holderStartTime)) return;
  for (const pid of descendantsOf(handle.holderPid)) killProcess(pid, "SIGTERM");
  // Reaped, and not only dead: then PID 1 knows of their end and has told it.
  await until(graceMs, () => descendantsOf(handle.holderPid).length === 0);
}

function claim(handle: SandboxHandle): boolean {
  try {
    closeSync(openSync(join(handle.dir, ENDED_FILE), "wx", 0o600));
    return true;
  } catch {
    return false;
  }
}

async function endedByOther(handle: SandboxHandle): Promise<EndReport> {
  const gone = await until(OTHER_ENDER_MS, () => !existsSync(handle.dir));
  const survivors = remaining(handle);
  return { clean: gone && survivors.length === 0, survivors, removed: Promise.resolve() };
}

/** The kernel lets PID 1 go only after everyone in its PID namespace, so that a payload can't hide. */
function remaining(handle: SandboxHandle): number[] {
  const holder = isRunning(handle.holderPid, handle.holderStartTime) ? [handle.holderPid] : [];
  return [...holder, ...sessionMembers(handle).filter((pid) => pid !== handle.holderPid)];
}

/** Short waits first: most ends take a few milliseconds, and nobody is told when they are over. */
async function until(limitMs: number, condition: () => boolean): Promise<boolean> {
  const stop = performance.now() + limitMs;
  for (let waitMs = 1; ; waitMs = Math.min(waitMs * 1.5, 50)) {
    if (condition()) return true;
    if (performance.now() > stop) return false;
    await Bun.sleep(waitMs);
  }
}
