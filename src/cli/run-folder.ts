import { existsSync, lstatSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { FileLock } from "../lib/file-lock.ts";
import { processStartTime } from "../lib/proc.ts";
import { removeTree } from "../lib/remove-tree.ts";

const NAME = /^rolloutd-run-(\d+)-/;
/** Held as long as the folder's run lives, however that ends. */
const LOCK = "run.lock";

/**
 * The data folder of a `rolloutd run` with a service of its own. It goes away with the run; what is left of one that was
 * killed goes with the next.
 */
export class RunFolder implements Disposable {
  readonly path: string;
  readonly #lock: FileLock;

  /** @param root where runs have their folders: a local disk, which `/tmp` may not be */
  constructor(root = "/var/tmp") {
    this.path = mkdtempSync(join(root, `rolloutd-run-${process.pid}-`));
    this.#lock = new FileLock(join(this.path, LOCK));
    this.#lock.tryExclusive();
    process.on("exit", this.#remove);
  }

  /** Also where a second Ctrl-C ends the process at once. */
  readonly #remove = () => rmSync(this.path, { recursive: true, force: true });

  [Symbol.dispose](): void {
    process.off("exit", this.#remove);
    this.#remove();
    this.#lock[Symbol.dispose]();
  }
}

/** Removes our own folders whose runs are gone. Does not fail: what can't be removed is no obstacle. */
export async function removeLeftFolders(root = "/var/tmp"): Promise<void> {
  for (const name of readdirSync(root)) {
    const pid = Number(NAME.exec(name)?.[1] ?? 0);
    // Its number may be another process's by now: then the folder stays until that is over.
    if (pid === 0 || processStartTime(pid) !== null) continue;
    await removeUnlocked(join(root, name)).catch(() => {});
  }
}

/** In a container of its own a run that lives has a number that is nobody's here; hence the lock. */
async function removeUnlocked(folder: string): Promise<void> {
  const { uid } = lstatSync(folder);
  const file = join(folder, LOCK);
  if (uid !== process.getuid?.() || !existsSync(file)) return;
  using lock = new FileLock(file);
  if (lock.tryExclusive()) await removeTree(folder);
}
