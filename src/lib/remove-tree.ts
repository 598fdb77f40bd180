import { type Dirent, lstatSync } from "node:fs";
import { chmod, readdir, rename, rm } from "node:fs/promises";

/** More than one is needed where somebody else removes the same tree. */
const MAX_TRIES = 20;
const RETRY_MS = 5;

/** `rm` takes a time that grows with the square of the depth. Also a path of so many names, each the longest, is not too long. */
const MAX_DEPTH = 12;

/**
 * Removes a folder whatever lies in it: a payload chooses modes, depth and the bytes of names, and the kernel's overlay
 * leaves a folder of mode 000. Links are removed, never followed. Nobody may still be adding to the tree.
 */
export async function removeTree(path: string): Promise<void> {
  for (let tries = 1; ; tries++) {
    const there = lstatSync(path, { throwIfNoEntry: false });
    if (there === undefined) return;
    try {
      if (there.isDirectory()) await makeRemovable(path);
      await rm(path, { recursive: true, force: true });
    } catch (error) {
      if (tries === MAX_TRIES) throw error;
    }
    if (tries > 1) await Bun.sleep(RETRY_MS);
  }
}

/** Opens every folder, and moves those that lie deep up to the root. Paths are bytes, as Latin-1. What fails is `rm`'s to tell. */
async function makeRemovable(path: string): Promise<void> {
  const root = Buffer.from(path).toString("latin1");
  const folders = [{ path: root, depth: 0 }];
  for (let folder = folders.pop(); folder !== undefined; folder = folders.pop()) {
    await chmod(bytesOf(folder.path), 0o700).catch(() => {});
    if (folder.depth === MAX_DEPTH) {
      // Not a name that the tree has already.
      const moved = `${root}/${crypto.randomUUID()}`;
      await rename(bytesOf(folder.path), bytesOf(moved)).catch(() => {});
      folder = { path: moved, depth: 1 };
    }
    for (const entry of await entriesOf(folder.path)) {
      if (!entry.isDirectory()) continue;
      folders.push({ path: `${folder.path}/${entry.name}`, depth: folder.depth + 1 });
    }
  }
}

async function entriesOf(folder: string): Promise<Dirent[]> {
  const options = { withFileTypes: true, encoding: "latin1" } as const;
  return await readdir(bytesOf(folder), options).catch(() => []);
}

function bytesOf(path: string): Buffer {
  return Buffer.from(path, "latin1");
}
