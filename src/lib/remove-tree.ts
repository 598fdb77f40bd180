import { chmod, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/**
 * Removes a folder whatever the modes inside: the kernel's overlay leaves one of mode 000, and a payload
 * can make more. Links are removed, never followed. Nobody may still be adding to the tree.
 */
export async function removeTree(path: string): Promise<void> {
  try {
    await rm(path, { recursive: true, force: true });
  } catch {
    await makeRemovable(path);
    await rm(path, { recursive: true, force: true });
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
