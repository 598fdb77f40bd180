import { lstatSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../../errors.ts";
import type { FileLock } from "../../lib/file-lock.ts";
import { checkUnchanged, fileState } from "./file-digest.ts";
import type { ImageCache } from "./image-cache.ts";
import { writeRecord } from "./record.ts";
import type { Source } from "./source.ts";
import { normaliseTree, takeInventory, treeDigest } from "./tree.ts";
import { diskFull, unpack } from "./unpack.ts";
import { checkSize, withinLimit } from "./unpack-limit.ts";

export type InstallOptions = {
  cache: ImageCache;
  /** As the job or the user named it, for messages. */
  image: string;
  source: Source;
  apptainer: string;
  /** Units: bytes. What nobody uses goes when the cache is larger. */
  maxBytes: number;
  signal: AbortSignal;
};

/**
 * Unpacks a source of known content, unless that is there or somebody else is at it.
 * @throws ServiceError as `unpack` does, and `image_busy`
 */
export async function installKnown(options: InstallOptions, digest: string): Promise<void> {
  const { cache, source, signal } = options;
  const before = source.kind === "folder" ? null : await fileState(source.location);
  const make = (lock: FileLock) =>
    withRoom(options, () =>
      cache.withTemporary(digest, async (folder) => {
        await unpackHere(options, folder, lock);
        const { location } = source;
        if (before !== null) await checkUnchanged(location, before);
        else if ((await treeDigest(join(folder, "rootfs"), signal)) !== digest) {
          throw new ServiceError("image_busy", `${location} was changed while it was copied`);
        }
        await record(options, folder, digest);
        put(options, folder, digest);
        return true;
      }),
    );
  await cache.once(digest, () => cache.has(digest) || null, make, signal);
}

/**
 * Fetches and unpacks what a registry has for a reference, unless `ready` says that this was done.
 * @param key of the reference
 * @returns the content's digest
 */
export async function installPulled(
  options: InstallOptions,
  key: string,
  ready: () => string | null,
): Promise<string> {
  const { cache, signal } = options;
  const make = (lock: FileLock) =>
    withRoom(options, () =>
      cache.withTemporary(key, async (folder) => {
        await unpackHere(options, folder, lock);
        const digest = await treeDigest(join(folder, "rootfs"), signal);
        await record(options, folder, digest);
        const place = async () => {
          put(options, folder, digest);
          return true;
        };
        await cache.once(digest, () => cache.has(digest) || null, place, signal);
        return digest;
      }),
    );
  return await cache.once(key, ready, make, signal);
}

async function unpackHere(options: InstallOptions, folder: string, lock: FileLock): Promise<void> {
  const { source, image, apptainer, maxBytes, signal } = options;
  await withinLimit({ image, folder, maxBytes, signal }, (signal) =>
    unpack(source, { image, folder, apptainer, lock, signal }),
  );
  const rootfs = join(folder, "rootfs");
  if (!isFolder(rootfs)) throw new ServiceError("image_invalid", `the image ${image} is empty`);
  await normaliseTree(rootfs, signal);
  if (exists(join(rootfs, "usr")) && exists(join(rootfs, "bin"))) return;
  const what = `the image ${image} is not a root file system: it has no usr or bin`;
  const mend = source.kind === "tar" ? { mend: "use docker-archive:PATH for docker save" } : {};
  throw new ServiceError("image_invalid", what, mend);
}

async function record(options: InstallOptions, folder: string, digest: string): Promise<void> {
  const inventory = await takeInventory(join(folder, "rootfs"), options.signal);
  checkSize({ ...options, folder }, inventory);
  writeRecord(folder, { digest, source: options.source, inventory });
}

function put({ cache, maxBytes }: InstallOptions, folder: string, digest: string): void {
  cache.put(digest, folder);
  // What can't be deleted now is deleted by the next one that prunes.
  cache.prune(maxBytes, digest).removed.catch(() => {});
}

/** On a full disk images that nobody uses make room, once. */
async function withRoom<T>(options: InstallOptions, work: () => Promise<T>): Promise<T> {
  try {
    return await diskErrors(options, work);
  } catch (error) {
    if (!(error instanceof ServiceError) || error.code !== "disk_full") throw error;
    const { digests, removed } = options.cache.prune(0);
    await removed;
    if (digests.length === 0) throw error;
    return await diskErrors(options, work);
  }
}

async function diskErrors<T>({ image }: InstallOptions, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    if (code !== "ENOSPC" && code !== "EDQUOT" && code !== "EFBIG") throw error;
    throw diskFull(image, message, error);
  }
}

/** Of the link itself: an absolute one would lead into the host's own tree. */
const exists = (path: string) => lstatSync(path, { throwIfNoEntry: false }) !== undefined;
const isFolder = (path: string) =>
  lstatSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
