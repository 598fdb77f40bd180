import { accessSync, constants, readFileSync } from "node:fs";
import { join, relative } from "node:path";

/** What limits need; systemd delegates only these two by default. */
const CONTROLLERS = ["memory", "pids"];

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
  if (!needed.every(isWritable)) return { why: "ours is not delegated to this user" };
  const pids = (read(join(path, "cgroup.procs")) ?? "").trim().split("\n");
  // Only a group without processes may have groups with limits below it: ours would have to be emptied.
  if (pids.length > 1) return { why: "ours has other processes as well" };
  return { path };
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

function isWritable(path: string): boolean {
  try {
    accessSync(path, constants.W_OK);
    return true;
  } catch {
    return false;
  }
}

function read(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
