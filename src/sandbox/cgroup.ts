import { constants, existsSync, mkdirSync, readFileSync, rmdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { ServiceError } from "../errors.ts";
import { isAccessible } from "../lib/is-accessible.ts";
import type { SandboxLimits } from "./sandbox.ts";

/** What limits need; systemd delegates only these two by default. */
const CONTROLLERS = ["memory", "pids"];

/** Apptainer's own, which run in the sandbox's group. */
const STARTER_TASKS = 64;

/** Where the kernel tells of a process's groups; tests have a tree of their own. */
export type CgroupFiles = { mountinfo: string; cgroup: string };

const OWN: CgroupFiles = { mountinfo: "/proc/self/mountinfo", cgroup: "/proc/self/cgroup" };

/**
 * The service's own cgroup, where groups with limits may be made below it; else why not, as the end of a
 * sentence. Changes nothing.
 */
export function delegatedCgroup(files = OWN): { path: string } | { why: string } {
  const path = ownCgroup(files);
  if (path === null) return { why: "no cgroup v2 is mounted" };
  const offered = (read(join(path, "cgroup.controllers")) ?? "").split(/\s+/);
  const lacking = CONTROLLERS.filter((name) => !offered.includes(name));
  if (lacking.length > 0) return { why: `ours has no ${lacking.join(" and no ")} controller` };
  const needed = [path, join(path, "cgroup.procs"), join(path, "cgroup.subtree_control")];
  if (!needed.every((path) => isAccessible(path, constants.W_OK)))
    return { why: "ours is not delegated to this user" };
  const pids = (read(join(path, "cgroup.procs")) ?? "").trim().split("\n");
  // Only a group without processes may have groups with limits below it: ours would have to be emptied.
  if (pids.length > 1) return { why: "ours has other processes as well" };
  return { path };
}

/**
 * Moves this process into a group of its own below, so that groups with limits may be made beside it. Where that
 * fails all is as before.
 *
 * @returns the folder for sandboxes' groups, or why there is none
 */
export function takeCgroup(files = OWN, pid = process.pid): { path: string } | { why: string } {
  const found = delegatedCgroup(files);
  if ("why" in found) return found;
  const service = join(found.path, "service");
  try {
    mkdirSync(service, { recursive: true });
    writeFileSync(join(service, "cgroup.procs"), `${pid}`);
    const switches = CONTROLLERS.map((name) => `+${name}`).join(" ");
    writeFileSync(join(found.path, "cgroup.subtree_control"), switches);
    return found;
  } catch (error) {
    // Both fail where the first of the above did: then there is nothing to take back.
    attempt(() => writeFileSync(join(found.path, "cgroup.procs"), `${pid}`));
    attempt(() => rmdirSync(service));
    return { why: `limits can't be switched on: ${error}` };
  }
}

/** A sandbox's group, with its limits. @throws ServiceError `sandbox_start_failed` */
export function makeGroup(root: string, name: string, limits: SandboxLimits): string {
  const group = join(root, `sandbox-${name}`);
  try {
    mkdirSync(group);
    // Its files in RAM count here as well.
    writeFileSync(join(group, "memory.max"), `${limits.memoryBytes + limits.tmpfsBytes}`);
    writeFileSync(join(group, "pids.max"), `${limits.processes + STARTER_TASKS}`);
  } catch (error) {
    attempt(() => rmdirSync(group));
    const what = `the cgroup ${group} can't be made: ${error}`;
    throw new ServiceError("sandbox_start_failed", what, { cause: error });
  }
  // Not every kernel accounts for swap.
  attempt(() => writeFileSync(join(group, "memory.swap.max"), "0"));
  return group;
}

/** A command line that enters `group` before it becomes `argv`, so that nothing of it is ever outside. */
export function inGroup(group: string | undefined, argv: string[]): string[] {
  if (group === undefined) return argv;
  return ["/bin/sh", "-c", 'echo 0 >"$0/cgroup.procs" && exec "$@"', group, ...argv];
}

/** SIGKILL to all that is in it, also to what left session and parent. */
export function killGroup(group: string): void {
  attempt(() => writeFileSync(join(group, "cgroup.kill"), "1"));
}

/** Whether it is gone. The kernel keeps it as long as a process is in it. */
export function removeGroup(group: string): boolean {
  attempt(() => rmdirSync(group));
  return !existsSync(group);
}

/** How far its memory went when the kernel killed for it; null: it did not. Units: bytes. */
export function killedForMemory(group: string): number | null {
  const kills = /^oom_kill (\d+)$/m.exec(read(join(group, "memory.events")) ?? "")?.[1];
  if (Number(kills ?? 0) === 0) return null;
  return Number(read(join(group, "memory.peak")) ?? read(join(group, "memory.max")) ?? 0);
}

function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // The caller looks at what came of it.
  }
}

/** `0::/path` is below the root of the mount. */
function ownCgroup({ mountinfo, cgroup }: CgroupFiles): string | null {
  const own = /^0::(.*)$/m.exec(read(cgroup) ?? "")?.[1];
  const mount = /^\d+ \d+ \S+ (\S+) (\S+) .* - cgroup2 /m.exec(read(mountinfo) ?? "");
  const [, root, point] = mount ?? [];
  if (own === undefined || root === undefined || point === undefined) return null;
  const below = relative(root, own);
  return below.startsWith("..") ? null : join(point, below);
}

function read(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
