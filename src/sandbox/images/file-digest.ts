import { createReadStream, statSync } from "node:fs";
import { stat } from "node:fs/promises";
import { ServiceError } from "../../errors.ts";
import { type CacheFolder, readJson, writeJson } from "./cache-folder.ts";

/** Says whether a file is still the one that was seen: any write changes its `ctime`. */
export type FileState = {
  dev: bigint;
  ino: bigint;
  size: bigint;
  mtimeNs: bigint;
  ctimeNs: bigint;
};

type Known = { state: string; sha256: string };

/** A file may be written twice in one tick of its file system's clock, so a recent one is read again. */
const SETTLED_MS = 3000;

/** @throws ServiceError `image_not_found`, `image_invalid` for what can't be read */
export async function fileState(path: string): Promise<FileState> {
  try {
    const { dev, ino, size, mtimeNs, ctimeNs } = await stat(path, { bigint: true });
    return { dev, ino, size, mtimeNs, ctimeNs };
  } catch (error) {
    throw cannotRead(path, error);
  }
}

export function cannotRead(path: string, error: unknown): ServiceError {
  const { code, message } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" || code === "ENOTDIR") {
    return new ServiceError("image_not_found", `there is no image at ${path}`, { cause: error });
  }
  const what = `the image ${path} can't be read: ${message}`;
  const mend = "have its owner open it, and the folders above, to this user (chmod a+rX)";
  return new ServiceError("image_invalid", what, {
    cause: error,
    ...(code === "EACCES" && { mend }),
  });
}

export function sameFile(a: FileState, b: FileState): boolean {
  return describe(a) === describe(b);
}

const describe = ({ dev, ino, size, mtimeNs, ctimeNs }: FileState) =>
  [dev, ino, size, mtimeNs, ctimeNs].join(" ");

/** SHA-256 of a file that has not changed since the cache noted it; null where nothing is noted. */
export function knownDigest(folder: CacheFolder, path: string): string | null {
  const state = statSync(path, { bigint: true });
  const known = readJson<Known>(folder.fileDigest(state.dev, state.ino));
  return known?.state === describe(state) ? known.sha256 : null;
}

/** SHA-256 of a file, from the cache's notes where it has not changed since. @throws ServiceError */
export async function fileDigest(
  folder: CacheFolder,
  path: string,
  state: FileState,
  signal: AbortSignal,
  nowMs = Date.now(),
): Promise<string> {
  const note = folder.fileDigest(state.dev, state.ino);
  const known = readJson<Known>(note);
  if (known?.state === describe(state)) return known.sha256;
  const settled = Number(state.ctimeNs / 1_000_000n) < nowMs - SETTLED_MS;
  const sha256 = await hashFile(path, signal);
  await checkUnchanged(path, state);
  if (settled) writeJson(note, { state: describe(state), sha256 } satisfies Known);
  return sha256;
}

/** @throws ServiceError `image_busy` where somebody writes to the file */
export async function checkUnchanged(path: string, state: FileState): Promise<void> {
  if (sameFile(await fileState(path), state)) return;
  throw new ServiceError("image_busy", `the image ${path} was changed while it was read`);
}

async function hashFile(path: string, signal: AbortSignal): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024, signal })) {
      hash.update(chunk);
    }
  } catch (error) {
    signal.throwIfAborted();
    throw cannotRead(path, error);
  }
  return hash.digest("hex");
}
