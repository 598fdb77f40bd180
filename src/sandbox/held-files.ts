import { readdirSync, readFileSync, readlinkSync, statSync } from "node:fs";

/** How long the thread's other work waits for a look at the processes. */
const SLICE_MS = 4;

const BLOCK_BYTES = 512;

/** What processes hold through descriptors, as far as no walk of folders finds it. */
export type HeldUse = {
  /** Units: bytes, of files without a name on a disk. */
  disk: number;
  descriptors: number;
  sockets: number;
  /** Descriptors are on their way between processes, or of a process that shows none: what they hold counts nothing. */
  hides: boolean;
};

/** Each file counts once. */
export async function heldFiles(pids: number[]): Promise<HeldUse> {
  const known = new Set<string>();
  const use: HeldUse = { disk: 0, descriptors: 0, sockets: 0, hides: false };
  let sliceEndMs = performance.now() + SLICE_MS;
  for (const pid of pids) {
    const paths = descriptorsOf(pid);
    if (paths === "hidden") use.hides = true;
    for (const path of paths === "hidden" ? [] : paths) {
      use.descriptors++;
      const link = linkAt(path);
      if (link.startsWith("socket:")) {
        use.sockets++;
        use.hides ||= carriesDescriptors(path);
      }
      const file = link.endsWith(" (deleted)") ? namelessAt(path) : null;
      if (file === null || known.has(file.id)) continue;
      known.add(file.id);
      use.disk += file.bytes;
    }
    if (performance.now() < sliceEndMs) continue;
    await new Promise((resolve) => setImmediate(resolve));
    sliceEndMs = performance.now() + SLICE_MS;
  }
  return use;
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

/** Whether the socket, or one that waits to be accepted there, has descriptors that nobody has received yet. */
function carriesDescriptors(path: string): boolean {
  try {
    return /^scm_fds:\s*[1-9]/m.test(readFileSync(path.replace("/fd/", "/fdinfo/"), "latin1"));
  } catch {
    return false;
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
