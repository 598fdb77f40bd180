import { lstatSync, mkdirSync, statfsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";

/** File systems on which locks, or SQLite's WAL, can't be relied upon, by `statfs` type. */
const UNSAFE_FILE_SYSTEMS = new Map([
  [0x6969, "NFS"],
  [0x0bd00bd0, "Lustre"],
  [0x47504653, "GPFS"],
  [0x65735546, "FUSE"],
  [0x517b, "SMB"],
  [0xff534d42, "CIFS"],
]);

/** Why a folder can't be used, to follow its path in a sentence. */
export type FolderProblem = { why: string; mend?: string; cause?: unknown };

/**
 * Makes a folder for us alone, or checks that the one that is there is ours and on a local disk. It may be no link, and
 * lie behind nobody else's: in /var/tmp anybody can have made one before us that leads to a folder of ours.
 */
export function makePrivateFolder(path: string): FolderProblem | null {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    return { why: `can't be made: ${(error as Error).message}`, cause: error };
  }
  const link = foreignLink(path);
  if (link !== null) return link;
  const { uid, mode } = statSync(path);
  if (uid !== process.getuid?.()) return { why: `belongs to another user (uid ${uid})` };
  if ((mode & 0o022) !== 0) {
    return { why: "can be written by other users", mend: `chmod 700 ${path}` };
  }
  const kind = UNSAFE_FILE_SYSTEMS.get(statfsSync(path).type >>> 0);
  return kind ? { why: `is on ${kind}, where locks can't be relied upon` } : null;
}

const STICKY = 0o1000;

/** What on the way to a folder leads elsewhere by another user's will; the folder itself may be no link at all. */
export function foreignLink(path: string): FolderProblem | null {
  const mend = "give the folder that is meant by its own path, or remove what is in its place";
  const parts = resolve(path).split("/").slice(1);
  let above = "/";
  for (const [index, part] of parts.entries()) {
    const here = join(above, part);
    const found = lstatSync(here, { throwIfNoEntry: false });
    if (!found) return null;
    const isLast = index === parts.length - 1;
    if (isLast && found.isSymbolicLink()) return { why: "is a link", mend };
    const isOurs = found.uid === 0 || found.uid === process.getuid?.();
    const isOpen = (statSync(above).mode & (STICKY | 0o002)) === (STICKY | 0o002);
    if (!isOurs && (found.isSymbolicLink() || (isOpen && !isLast))) {
      return { why: `lies behind ${here}, which is another user's (uid ${found.uid})`, mend };
    }
    above = here;
  }
  return null;
}
