import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { withSpareDescriptor } from "./spare-descriptor.ts";

// Processes as /proc shows them. A zombie counts as gone: it holds nothing but its number.

/** Null: the process is gone, or not ours to look at. */
function link(path: string): string | null {
  try {
    return readlinkSync(path);
  } catch {
    return null;
  }
}

function namesIn(folder: string): string[] {
  return withSpareDescriptor(() => readdirSync(folder));
}

type Stat = { state: string; parent: number; session: number; startTime: string };

function read(path: string): string | null {
  try {
    return withSpareDescriptor(() => readFileSync(path, "utf8"));
  } catch {
    return null;
  }
}

function stat(pid: number): Stat | null {
  const text = read(`/proc/${pid}/stat`);
  if (text === null) return null;
  // The name in parentheses may itself hold spaces and parentheses.
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ");
  const [state, parent, , session] = fields;
  const startTime = fields[19];
  if (state === undefined || session === undefined || startTime === undefined) return null;
  if (state === "Z" || state === "X") return null;
  return { state, parent: Number(parent), session: Number(session), startTime };
}

/** Start in clock ticks since boot. With the pid it names one process for ever. Null: no such process. */
export function processStartTime(pid: number): string | null {
  return pid > 0 ? (stat(pid)?.startTime ?? null) : null;
}

/** Where a process hangs in the host's trees. Null: it has ended. */
export type Place = { parent: number; session: number; startTime: string };

export function placeOf(pid: number): Place | null {
  return pid > 0 ? stat(pid) : null;
}

export function isRunning(pid: number, startTime: string): boolean {
  return processStartTime(pid) === startTime;
}

export function childrenOf(pid: number): number[] {
  const children: number[] = [];
  try {
    for (const task of namesIn(`/proc/${pid}/task`)) {
      const text = read(`/proc/${pid}/task/${task}/children`) ?? "";
      for (const child of text.split(" ")) if (child !== "") children.push(Number(child));
    }
  } catch {
    // It ended while we looked.
  }
  return children;
}

/** @param most stop looking when so many are found. */
export function descendantsOf(pid: number, most = Number.POSITIVE_INFINITY): number[] {
  const found = childrenOf(pid);
  for (const child of found) {
    if (found.length >= most) break;
    found.push(...childrenOf(child));
  }
  return found;
}

/** Of a filter for system calls that a process has installed: the most instructions that it may have, compiled. */
const FILTER_BYTES = 131_072;

export type ProcessUse = {
  /** Memory that the process has in RAM; what it shares with others counts in full. */
  residentBytes: number;
  /** Beyond that: its page tables, what was swapped out, huge pages, filters. */
  otherBytes: number;
  /** Threads count: each is a process to the kernel's limits. */
  tasks: number;
};

/** All zero where it has ended. */
export function processUse(pid: number): ProcessUse {
  const text = read(`/proc/${pid}/status`) ?? "";
  const number = (name: string) => {
    const at = text.indexOf(`\n${name}:`);
    return at < 0 ? 0 : Number.parseInt(text.slice(at + name.length + 2), 10);
  };
  const kilobytes = number("VmPTE") + number("VmSwap") + number("HugetlbPages");
  // The first one is the sandbox's own.
  const filters = Math.max(0, number("Seccomp_filters") - 1);
  return {
    residentBytes: number("VmRSS") * 1024,
    otherBytes: kilobytes * 1024 + filters * FILTER_BYTES,
    tasks: number("Threads"),
  };
}

/**
 * `residentBytes` with its share only of what it shares, which costs the kernel a walk; `shmem` is what of it are files in
 * memory. Null: not ours to look at.
 */
export function proportionalBytes(pid: number): { all: number; shmem: number } | null {
  const text = read(`/proc/${pid}/smaps_rollup`) ?? "";
  const [all, shmem] = ["Pss", "Pss_Shmem"].map((name) => {
    const kilobytes = new RegExp(`^${name}: +(\\d+) kB$`, "m").exec(text)?.[1];
    return kilobytes === undefined ? null : Number(kilobytes) * 1024;
  });
  return all == null ? null : { all, shmem: shmem ?? 0 };
}

/** The process's number in each PID namespace that it is in, from ours to its innermost. */
export function namespacePids(pid: number): number[] {
  const line = read(`/proc/${pid}/status`)?.match(/^NSpid:(.*)$/m)?.[1];
  return line === undefined ? [] : line.trim().split(/\s+/).map(Number);
}

export function allPids(): number[] {
  return namesIn("/proc")
    .map(Number)
    .filter((pid) => pid > 0);
}

/** Null: no such process. */
export function sessionOf(pid: number): number | null {
  return stat(pid)?.session ?? null;
}

/** The table of mounts that the process sees. Null: it is gone, or not ours to look at. */
export function mountsOf(pid: number): string | null {
  return read(`/proc/${pid}/mountinfo`);
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
  const path = "/proc/sys/kernel/random/boot_id";
  return withSpareDescriptor(() => readFileSync(path, "utf8")).trim();
}

/** Sends SIGKILL, or another signal. Returns false where the process is gone or not ours. */
export function killProcess(pid: number, signal: NodeJS.Signals = "SIGKILL"): boolean {
  try {
    process.kill(pid, signal);
    return true;
  } catch {
    return false;
  }
}
