import { mkdirSync, statfsSync, statSync } from "node:fs";

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

/** Makes a folder for us alone, or checks that the one that is there is ours and on a local disk. */
export function makePrivateFolder(path: string): FolderProblem | null {
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (error) {
    return { why: `can't be made: ${(error as Error).message}`, cause: error };
  }
  const { uid, mode } = statSync(path);
  if (uid !== process.getuid?.()) return { why: `belongs to another user (uid ${uid})` };
  if ((mode & 0o022) !== 0) {
    return { why: "can be written by other users", mend: `chmod 700 ${path}` };
  }
  const kind = UNSAFE_FILE_SYSTEMS.get(statfsSync(path).type >>> 0);
  return kind ? { why: `is on ${kind}, where locks can't be relied upon` } : null;
}
