import { rmSync } from "node:fs";
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { bootId, killProcess } from "../lib/proc.ts";
import { ProcessLook } from "../lib/process-look.ts";
import { removeTree } from "../lib/remove-tree.ts";
import { ENDED_FILE, moveToTrash, readRecord, trashOf } from "./directory.ts";
import { endSandbox } from "./end.ts";

export type Reaped = {
  /** Names of the folders that a predecessor left. */
  sandboxes: string[];
  /** Host pids that were still alive and are killed. */
  killed: number[];
  /** Host pids that could not be killed in time. */
  survivors: number[];
};

/**
 * Removes what predecessors left below `root`: only one service owns a data folder, so all of it. Goes by
 * our records and by who has our folders mounted, never by a process's name. Call before the first start.
 */
export async function reapSandboxes(root: string): Promise<Reaped> {
  await mkdir(root, { recursive: true, mode: 0o700 });
  const names = await readdir(root);
  const sandboxes = names.filter((name) => join(root, name) !== trashOf(root));
  const reaped: Reaped = { sandboxes, killed: [], survivors: [] };
  const boot = bootId();
  for (const name of sandboxes) {
    const dir = join(root, name);
    const record = readRecord(dir);
    // After a reboot every process is gone, and the pids are other people's.
    if (record?.bootId === boot) {
      // Before the end: it kills these too, but would not say so.
      reaped.killed.push(...new ProcessLook().mounting(name));
      // Who was at it is gone, so that nobody need wait for it.
      rmSync(join(dir, ENDED_FILE), { force: true });
      // The descriptor was the predecessor's.
      const handle = { ...record.handle, dir, controlFd: -1 };
      const { survivors, removed } = await endSandbox(handle);
      reaped.survivors.push(...survivors);
      // Two that remove the same tree can get in each other's way; what it could not remove is ours below.
      await removed.catch(() => {});
    }
    for (const pid of new ProcessLook().mounting(name)) killProcess(pid);
    moveToTrash(dir);
  }
  await removeTree(trashOf(root));
  return reaped;
}
