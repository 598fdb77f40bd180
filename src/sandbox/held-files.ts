import { readdirSync, readlinkSync, statSync } from "node:fs";

/** How long the thread's other work waits for a look at the processes. */
const SLICE_MS = 4;

const BLOCK_BYTES = 512;

/** In bytes: files without a name on a disk, and in memory (`memfd_create`), where nobody has to map them. */
export type HeldUse = { disk: number; memory: number };

/**
 * What processes have in files that have no name, which no walk of folders finds. Each file counts once; what a
 * process does not show counts nothing.
 */
export async function heldFiles(pids: number[]): Promise<HeldUse> {
  const known = new Set<string>();
  const use: HeldUse = { disk: 0, memory: 0 };
  let sliceEndMs = performance.now() + SLICE_MS;
  for (const pid of pids) {
    for (const path of descriptorsOf(pid)) {
      const file = namelessAt(path);
      if (file === null || known.has(file.id)) continue;
      known.add(file.id);
      use[file.in] += file.bytes;
    }
    if (performance.now() < sliceEndMs) continue;
    await new Promise((resolve) => setImmediate(resolve));
    sliceEndMs = performance.now() + SLICE_MS;
  }
  return use;
}

/** Paths. None where the process has ended, or is not ours to look at. */
function descriptorsOf(pid: number): string[] {
  const folder = `/proc/${pid}/fd`;
  try {
    return readdirSync(folder).map((fd) => `${folder}/${fd}`);
  } catch {
    return [];
  }
}

function namelessAt(path: string): { id: string; in: keyof HeldUse; bytes: number } | null {
  try {
    const link = readlinkSync(path);
    if (!link.endsWith(" (deleted)")) return null;
    const { dev, ino, nlink, blocks } = statSync(path);
    if (nlink > 0) return null;
    const isMemory = link.startsWith("/memfd:");
    return {
      id: `${dev}:${ino}`,
      in: isMemory ? "memory" : "disk",
      bytes: blocks * BLOCK_BYTES,
    };
  } catch {
    // It was closed meanwhile.
    return null;
  }
}
