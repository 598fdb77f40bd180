import { closeSync, openSync, readFileSync, readSync, statSync } from "node:fs";
import { largestMappings, mostSharedBytes } from "./shared-memory.ts";

/** What a descriptor keeps in the kernel, at most: a pipe of two buffers, its file and inode. */
export const DESCRIPTOR_BYTES = 8192;
/** Of one mapping, beyond its pages and page tables. */
const AREA_BYTES = 256;
const PAGE_BYTES = 4096;
/** A process may have 65,530 areas, and its table of them take as much as that. */
const MAX_TABLE_BYTES = 1 << 20;
const MAX_AREAS = 65_530;
const SLICE_MS = 4;

/** What a socket's buffers keep, at most: a sender may go over the size by one message of that size. */
export const SOCKET_BYTES = 2 * lastNumberIn("/proc/sys/net/core/wmem_default", 212_992);
/** Those of TCP grow up to these while data flows. */
const TCP_BYTES =
  lastNumberIn("/proc/sys/net/ipv4/tcp_rmem", 33_554_432) +
  lastNumberIn("/proc/sys/net/ipv4/tcp_wmem", 4_194_304);

/**
 * The most that the sockets of a process's network namespace can keep in their buffers: each what the filter leaves
 * it. Buffers of TCP and UDP grow beyond that, but in all never to more than the kernel tells of all the node's.
 */
export function socketBytes(pid: number): number {
  const text = textOf(`/proc/${pid}/net/sockstat`) + textOf(`/proc/${pid}/net/sockstat6`);
  const count = (pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? 0);
  const tcp = count(/^TCP: inuse (\d+)/m) + count(/^TCP6: inuse (\d+)/m);
  const udp = count(/^UDP: inuse (\d+)/m) + count(/^UDP6: inuse (\d+)/m);
  const others = Math.max(0, count(/^sockets: used (\d+)/m) - tcp - udp);
  return (
    others * SOCKET_BYTES +
    Math.min(tcp * TCP_BYTES, count(/^TCP: .* mem (\d+)/m) * PAGE_BYTES) +
    Math.min(udp * SOCKET_BYTES, count(/^UDP: .* mem (\d+)/m) * PAGE_BYTES)
  );
}

export type MappedUse = {
  /** Of shared memory without a name, which processes need not have in RAM as far as their tables say. */
  sharedBytes: number;
  /** For the list of mappings. */
  tableBytes: number;
  /** A file that was deleted on `device` is mapped, so that what it takes of the disk counts nothing. */
  hides: boolean;
};

/** What the mappings of a sandbox's processes keep beyond what is resident in them. */
export async function mappedUse(
  holderPid: number,
  pids: number[],
  dir: string,
): Promise<MappedUse> {
  const objects = new Set<string>();
  const device = deviceOf(dir);
  const use = { sharedBytes: 0, tableBytes: 0, hides: false };
  let seesAll = true;
  let sliceEndMs = performance.now() + SLICE_MS;
  for (const pid of pids) {
    const table = tableOf(pid);
    const isWhole = table !== null && table.length < MAX_TABLE_BYTES;
    seesAll &&= isWhole;
    const lines = table?.split("\n") ?? [];
    use.tableBytes += AREA_BYTES * (isWhole ? lines.length : MAX_AREAS);
    for (const line of lines) {
      if (!line.endsWith(" (deleted)")) continue;
      const [, , , on, inode = ""] = line.split(" ");
      if (line.endsWith(" /dev/zero (deleted)")) objects.add(inode);
      else use.hides ||= on === device;
    }
    if (performance.now() < sliceEndMs) continue;
    await new Promise((resolve) => setImmediate(resolve));
    sliceEndMs = performance.now() + SLICE_MS;
  }
  const largest = largestMappings(holderPid);
  const most = seesAll ? objects.size : Math.max(largest.length, objects.size);
  use.sharedBytes = mostSharedBytes(largest, most);
  return use;
}

/** As a process's list of mappings names it. */
function deviceOf(path: string): string {
  const dev = statSync(path, { throwIfNoEntry: false })?.dev ?? 0;
  const major = (dev >> 8) & 0xfff;
  const minor = (dev & 0xff) | ((dev >> 12) & 0xfff00);
  return [major, minor].map((number) => number.toString(16).padStart(2, "0")).join(":");
}

/** Null: not ours to look at. What ended has an empty one. */
function tableOf(pid: number): string | null {
  let fd: number;
  try {
    fd = openSync(`/proc/${pid}/maps`, "r");
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES" ? null : "";
  }
  const buffer = Buffer.alloc(65_536);
  let table = "";
  try {
    while (table.length < MAX_TABLE_BYTES) {
      const length = readSync(fd, buffer);
      if (length === 0) break;
      table += buffer.toString("latin1", 0, length);
    }
  } catch {
    // It ended while we read.
  } finally {
    closeSync(fd);
  }
  return table;
}

function textOf(path: string): string {
  try {
    return readFileSync(path, "latin1");
  } catch {
    return "";
  }
}

/** The last number there, which is the largest. */
function lastNumberIn(path: string, otherwise: number): number {
  return Number(textOf(path).trim().split(/\s+/).at(-1)) || otherwise;
}
