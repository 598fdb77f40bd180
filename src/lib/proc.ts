import { readdirSync, readFileSync, readlinkSync } from "node:fs";

/** Processes as /proc shows them. A zombie counts as gone: it holds nothing but its number. */

/** Null: the process is gone, or not ours to look at. */
function link(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

type Stat = { state: string; session: number; startTime: string };

function read(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}

function stat(pid: number): Stat | null {
  const text = read(`/proc/${pid}/stat`);
  if (text === null) return null;
  // The name in parentheses may itself hold spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, , , session] = fields;
  const startTime = fields[19];
  if (state === undefined || session === undefined || startTime === undefined) return null;
  return state === "Z" || state === "X" ? null : { state, session: Number(session), startTime };
}

/** Start in clock ticks since boot. With the pid it names one process for ever. Null: no such process. */
export function processStartTime(pid: number): string | null {
  return pid > 0 ? (stat(pid)?.startTime ?? null) : null;
}

export function isRunning(pid: number, startTime: string): boolean {
  return processStartTime(pid) === startTime;
}

export function childrenOf(pid: number): number[] {
  const children: number[] = [];
  try {
    for (const task of readdirSync(`/proc/${pid}/task`)) {
      const text = read(`/proc/${pid}/task/${task}/children`) ?? "";
      for (const child of text.split(" ")) if (child !== "") children.push(Number(child));
    }
  } catch {
    // It ended while we looked.
  }
  return children;
}

export function descendantsOf(pid: number): number[] {
  const found = childrenOf(pid);
  for (const child of found) found.push(...childrenOf(child));
  return found;
}

/** The process's number in each PID namespace that it is in, from ours to its innermost. */
export function namespacePids(pid: number): number[] {
  const line = read(`/proc/${pid}/status`)?.match(/^NSpid:(.*)$/m)?.[1];
  return line === undefined ? [] : line.trim().split(/\s+/).map(Number);
}

function allPids(names: string[]): number[] {
  return names.map(Number).filter((pid) => pid > 0);
}

export function processesInSession(session: number): number[] {
  return allPids(readdirSync("/proc")).filter((pid) => stat(pid)?.session === session);
}

/**
 * Processes that have something mounted from below a folder called `name`. Paths in mountinfo begin at the
 * root of their file system, hence no whole path.
 */
export function processesMounting(name: string): number[] {
  // All processes of a mount namespace have the same mounts, and to read those is what costs.
  const mounting = new Map<string, boolean>();
  return allPids(readdirSync("/proc")).filter((pid) => {
    const namespace = link(`/proc/${pid}/ns/mnt`);
    if (namespace === null) return false;
    const known = mounting.get(namespace);
    if (known !== undefined) return known;
    const mounts = read(`/proc/${pid}/mountinfo`);
    // It ended between the two looks: the next process of the namespace tells.
    if (mounts === null) return false;
    const found = mounts.includes(`/${name}/`);
    mounting.set(namespace, found);
    return found;
  });
}

/** Null: the process is gone, or not ours to look at. */
export function namespaceOf(pid: number | "self", name: string): string | null {
  return link(`/proc/${pid}/ns/${name}`);
}

export type Privileges = { capabilities: boolean; noNewPrivileges: boolean; filtered: boolean };

/** `capabilities`: it has some, or could get some by a program that it starts. */
export function privilegesOf(pid: number): Privileges {
  const status = read(`/proc/${pid}/status`) ?? "";
  const none = [...status.matchAll(/^Cap(?:Inh|Prm|Eff|Bnd|Amb):\t0+$/gm)].length === 5;
  return {
    capabilities: !none,
    noNewPrivileges: /^NoNewPrivs:\t1$/m.test(status),
    filtered: /^Seccomp:\t2$/m.test(status),
  };
}

/** Changes with every boot of the host: pids and start times compare only within one. */
export function bootId(): string {
  return readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim();
}

/** SIGKILL. Returns false where the process is gone or not ours. */
export function killProcess(pid: number, signal: NodeJS.Signals = "SIGKILL"): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}
