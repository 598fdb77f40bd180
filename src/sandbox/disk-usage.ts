import { type Dirent, lstatSync, readdirSync, type Stats } from "node:fs";
import { join } from "node:path";

/** How long the thread's other work waits for a look at the tree. */
const SLICE_MS = 4;

const BLOCK_BYTES = 512;

/**
 * What the trees below `roots` take on the disk, as they are walked: the sum so far, about every `SLICE_MS`.
 * What can't be read counts nothing, a file with several names counts once, and no link is followed.
 */
export async function* diskUsage(roots: string[]): AsyncGenerator<number> {
  const linked = new Set<number>();
  const folders = [...roots];
  let bytes = 0;
  let sliceEndMs = performance.now() + SLICE_MS;
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    for (const entry of entriesOf(folder)) {
      const path = join(folder, entry.name);
      const stat = statOf(path);
      if (entry.isDirectory()) folders.push(path);
      else if (stat && stat.nlink > 1) {
        if (linked.has(stat.ino)) continue;
        linked.add(stat.ino);
      }
      bytes += (stat?.blocks ?? 0) * BLOCK_BYTES;
      if (performance.now() < sliceEndMs) continue;
      yield bytes;
      await new Promise((resolve) => setImmediate(resolve));
      sliceEndMs = performance.now() + SLICE_MS;
    }
  }
  yield bytes;
}

function statOf(path: string): Stats | null {
  try {
    return lstatSync(path);
  } catch {
    return null;
  }
}

function entriesOf(folder: string): Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return [];
  }
}
