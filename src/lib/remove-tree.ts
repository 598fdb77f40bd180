import { existsSync } from "node:fs";
import { chmod, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/** More than one is needed for closed folders, and where somebody else removes the same tree. */
const MAX_TRIES = 20;
const RETRY_MS = 5;

/**
 * Removes a folder whatever the modes inside: the kernel's overlay leaves one of mode 000, and a payload
 * can make more. Links are removed, never followed. Nobody may still be adding to the tree.
 */
export async function removeTree(path: string): Promise<void> {
  for (let tries = 1; existsSync(path); tries++) {
    try {
      await rm(path, { recursive: true, force: true });
    } catch (error) {
      if (tries === MAX_TRIES) throw error;
      await makeRemovable(path);
    }
    if (tries > 1) await Bun.sleep(RETRY_MS);
  }
}

async function makeRemovable(path: string): Promise<void> {
  const folders = [path];
  for (const folder of folders) {
    await chmod(folder, 0o700).catch(ifGone);
    for (const entry of (await readdir(folder, { withFileTypes: true }).catch(ifGone)) ?? []) {
      if (entry.isDirectory()) folders.push(join(folder, entry.name));
    }
  }
}

/** Somebody else may be removing it as well. */
function ifGone(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
