import { type Dirent, lstatSync, readdirSync, type Stats } from "node:fs";

/** How long the thread's other work waits for a look at the tree. */
const SLICE_MS = 4;

const BLOCK_BYTES = 512;

/** `hides`: a folder is closed, or lies too deep for any path, so that what is in it counts nothing. */
export type DiskUse = { bytes: number; files: number; hides: boolean };

/**
 * What the trees below `roots` take on the disk, as they are walked: the sum so far, about every `SLICE_MS`.
 * A file with several names counts once, and no link is followed. Names are bytes, which a payload chooses.
 */
export async function* diskUsage(roots: string[]): AsyncGenerator<DiskUse> {
  const linked = new Set<number>();
  const folders = roots.map((root) => Buffer.from(root).toString("latin1"));
  const use: DiskUse = { bytes: 0, files: 0, hides: false };
  let sliceEndMs = performance.now() + SLICE_MS;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    const entries = entriesOf(folder);
    use.hides ||= entries === "hidden";
    for (const entry of entries === "hidden" ? [] : entries) {
      const path = `${folder}/${entry.name}`;
      const stat = statOf(path);
      if (entry.isDirectory()) folders.push(path);
      else if (stat && stat.nlink > 1) {
        if (linked.has(stat.ino)) continue;
        linked.add(stat.ino);
      }
      use.files++;
      use.bytes += (stat?.blocks ?? 0) * BLOCK_BYTES;
      if (performance.now() < sliceEndMs) continue;
      yield use;
      await new Promise((resolve) => setImmediate(resolve));
      sliceEndMs = performance.now() + SLICE_MS;
    }
  }
  yield use;
}

function statOf(path: string): Stats | null {
  try {
    return lstatSync(Buffer.from(path, "latin1"));
  } catch {
    return null;
  }
}

function entriesOf(folder: string): Dirent[] | "hidden" {
  try {
    const options = { withFileTypes: true, encoding: "latin1" } as const;
    return readdirSync(Buffer.from(folder, "latin1"), options);
  } catch (error) {
    // Else it is gone, or was never there.
    const { code } = error as NodeJS.ErrnoException;
    return code === "EACCES" || code === "ENAMETOOLONG" ? "hidden" : [];
  }
}
