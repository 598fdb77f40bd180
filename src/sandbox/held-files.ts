import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";
import { DESCRIPTOR_BYTES, INOTIFY_BYTES, LOCK_BYTES, WATCH_BYTES } from "./kernel-memory.ts";

/** How long the thread's other work waits for a look at the processes. */
const SLICE_MS = 4;

const BLOCK_BYTES = 512;

/** What processes hold through descriptors, as far as no walk of folders finds it. */
export type HeldUse = {
  /** Units: bytes, of files without a name on a disk. */
  disk: number;
  /** Units: bytes, of the kernel's memory for the descriptors and what hangs on them, at most. */
  kernel: number;
  sockets: number;
  /** Descriptors are on their way between processes, or of a process that shows none: what they hold counts nothing. */
  hides: boolean;
};

/**
 * Each file counts once.
 * @param mostKernel bytes: who has more is looked at no further
 */
export async function heldFiles(pids: number[], mostKernel: number): Promise<HeldUse> {
  const known = new Set<string>();
  const use: HeldUse = { disk: 0, kernel: 0, sockets: 0, hides: false };
  let sliceEndMs = performance.now() + SLICE_MS;
  for (const pid of pids) {
    const paths = descriptorsOf(pid);
    if (paths === "hidden") use.hides = true;
    const locked = new Set<string>();
    for (const path of paths === "hidden" ? [] : paths) {
      const link = linkAt(path);
      const about = aboutDescriptor(path);
      use.kernel += DESCRIPTOR_BYTES + watchBytes(link, about);
      // Locks belong to a process and a file, so that each of its descriptors shows them.
      if (!locked.has(link)) use.kernel += LOCK_BYTES * lines(about, "lock:");
      if (about.includes("\nlock:")) locked.add(link);
      if (use.kernel > mostKernel) return use;
      if (link.startsWith("socket:")) {
        use.sockets++;
        // It, or one that waits to be accepted there, has descriptors that nobody has received yet.
        use.hides ||= /^scm_fds:\s*[1-9]/m.test(about);
      }
      const file = link.endsWith(" (deleted)") ? namelessAt(path) : null;
      if (file !== null && !known.has(file.id)) {
        known.add(file.id);
        use.disk += file.bytes;
      }
      if (performance.now() < sliceEndMs) continue;
      await new Promise((resolve) => setImmediate(resolve));
      sliceEndMs = performance.now() + SLICE_MS;
    }
  }
  return use;
}

/** For what a descriptor waits. */
function watchBytes(link: string, about: string): number {
  if (link === "anon_inode:[eventpoll]") return WATCH_BYTES * lines(about, "tfd:");
  if (/^anon_inode:\[?inotify/.test(link)) return INOTIFY_BYTES;
  return 0;
}

function lines(text: string, start: string): number {
  return text.split(`\n${start}`).length - 1;
}

/** Paths. None where the process has ended. */
function descriptorsOf(pid: number): string[] | "hidden" {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).map((fd) => `${folder}/${fd}`);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EACCES" ? "hidden" : [];
  }
}

function linkAt(path: string): string {
  try {
    return readlinkSync(path);
  } catch {
    // It was closed meanwhile.
    return "";
  }
}

/** What the kernel tells of a descriptor; empty where it was closed meanwhile. */
function aboutDescriptor(path: string): string {
  try {
    return readFileSync(path.replace("/fd/", "/fdinfo/"), "latin1");
  } catch {
    return "";
  }
}

function namelessAt(path: string) {
  try {
    const { dev, ino, nlink, blocks } = statSync(path);
    if (nlink > 0) return null;
    return { id: `${dev}:${ino}`, bytes: blocks * BLOCK_BYTES };
  } catch {
    return null;
  }
}
