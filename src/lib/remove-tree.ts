import { chmod, lstat, readdir, rm } from "node:fs/promises";
import { join } from "node:path";

/**
 * Removes a folder whatever the modes inside: the kernel's overlay leaves one of mode 000, and a payload
 * can make more. Links are removed, never followed. Nobody else may still be changing the tree.
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
    await chmod(folder, 0o700);
    for (const name of await readdir(folder)) {
      const inner = join(folder, name);
      if ((await lstat(inner)).isDirectory()) folders.push(inner);
    }
  }
}
