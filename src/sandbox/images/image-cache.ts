import { existsSync, mkdirSync, readdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../../errors.ts";
import { abortable } from "../../lib/abortable.ts";
import { FileLock } from "../../lib/file-lock.ts";
import { makePrivateFolder } from "../../lib/private-folder.ts";
import { removeTree } from "../../lib/remove-tree.ts";
import { CacheFolder } from "./cache-folder.ts";
import {
  type ImageRecord,
  isIntact,
  isUsable,
  lastUsedMs,
  readRecord,
  touchUsed,
  unmark,
} from "./record.ts";

export type CachedImage = { record: ImageRecord; lastUsedMs: number; inUse: boolean };
export type Pruned = { digests: string[]; bytes: number };

/** A damaged image can be replaced only when nobody uses it. */
const REPLACE_WAIT_MS = 10_000;
const MAX_PAUSE_MS = 50;
const DIGEST = /^[0-9a-f]{64}$/;

/**
 * Unpacked images by content, and the locks around them. Every method is safe beside other threads and
 * processes that work in the same folder, and beside their death.
 */
export class ImageCache {
  readonly folder: CacheFolder;
  readonly #replaceWaitMs: number;

  /** @throws ServiceError `image_cache_unusable` */
  constructor(root: string, replaceWaitMs = REPLACE_WAIT_MS) {
    const problem = makePrivateFolder(root);
    if (problem !== null) {
      const { why, cause } = problem;
      const mend = problem.mend ?? "choose a folder on a local disk with --image-cache";
      const message = `the image cache ${root} ${why}`;
      throw new ServiceError("image_cache_unusable", message, { mend, cause });
    }
    this.folder = new CacheFolder(root);
    this.#replaceWaitMs = replaceWaitMs;
  }

  has(digest: string): boolean {
    return readRecord(this.folder, digest) !== null;
  }

  /**
   * A whole image, kept from being removed as long as the lock is held; null where there is none. Waits for
   * whoever has it exclusively.
   */
  async lease(digest: string, signal: AbortSignal): Promise<FileLock | null> {
    const lock = new FileLock(this.folder.lock(digest));
    try {
      for await (const _ of pauses(signal)) {
        if (!this.has(digest)) break;
        if (!lock.tryShared()) continue;
        if (await isUsable(this.folder, digest, signal)) {
          touchUsed(this.folder, digest);
          return lock;
        }
        unmark(this.folder, digest);
        break;
      }
    } catch (error) {
      lock[Symbol.dispose]();
      throw error;
    }
    lock[Symbol.dispose]();
    return null;
  }

  /**
   * Lets one process make what belongs to `key`, and the others wait for it.
   * @param ready what was made, once it is there
   * @throws ServiceError `image_busy` where a damaged image is in use for so long
   */
  async once<T>(
    key: string,
    ready: () => T | null,
    make: (lock: FileLock) => Promise<T>,
    signal: AbortSignal,
  ): Promise<T> {
    using lock = new FileLock(this.folder.lock(key));
    const busyMs = performance.now() + this.#replaceWaitMs;
    for await (const _ of pauses(signal)) {
      const before = ready();
      if (before !== null) return before;
      if (lock.tryExclusive()) {
        const meanwhile = ready();
        if (meanwhile !== null) return meanwhile;
        this.#sweepTemporaries(key);
        this.#discard(key);
        return await make(lock);
      }
      if (performance.now() > busyMs && existsSync(this.folder.image(key))) {
        const message = `the damaged image ${key} is in use and can't be replaced yet`;
        throw new ServiceError("image_busy", message);
      }
    }
    throw new Error("pauses end only by their signal");
  }

  /** A folder to work in, for whoever has the lock of `key`; renamed by `put` or else removed. */
  async withTemporary<T>(key: string, work: (folder: string) => Promise<T>): Promise<T> {
    const folder = this.folder.temporary(key);
    mkdirSync(folder, { mode: 0o700 });
    try {
      return await work(folder);
    } finally {
      await removeTree(folder);
    }
  }

  /** Makes a folder with a record the image `digest`, which the caller has locked exclusively. */
  put(digest: string, folder: string): void {
    renameSync(folder, this.folder.image(digest));
  }

  list(): CachedImage[] {
    return this.#digests().flatMap((digest) => {
      const record = readRecord(this.folder, digest);
      if (record === null) return [];
      using lock = new FileLock(this.folder.lock(digest));
      const used = lastUsedMs(this.folder, digest);
      return [{ record, lastUsedMs: used, inUse: !lock.tryExclusive() }];
    });
  }

  /**
   * Removes images until the rest takes at most `maxBytes`: the least recently used first, and none that is
   * in use. Their files go in the background.
   * @param keep one that is about to be used
   */
  prune(maxBytes: number, keep?: string): Pruned & { removed: Promise<unknown> } {
    const pruned: Pruned = { digests: [], bytes: 0 };
    const images = this.#digests()
      .map((digest) => ({
        digest,
        bytes: readRecord(this.folder, digest)?.inventory.bytes ?? 0,
        damaged: !this.has(digest),
        usedMs: lastUsedMs(this.folder, digest),
      }))
      .sort((a, b) => a.usedMs - b.usedMs);
    let total = images.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const { digest, bytes, damaged } of images) {
      if (digest === keep || (!damaged && total <= maxBytes)) continue;
      if (!this.remove(digest)) continue;
      total -= bytes;
      pruned.bytes += bytes;
      pruned.digests.push(digest);
    }
    return { ...pruned, removed: this.sweep() };
  }

  /** False where it is in use. */
  remove(digest: string): boolean {
    using lock = new FileLock(this.folder.lock(digest));
    if (!lock.tryExclusive()) return false;
    this.#discard(digest);
    return true;
  }

  /** Whether the files are as they were when they were unpacked. A damaged image is never used again. */
  async verify(digest: string, signal: AbortSignal): Promise<boolean> {
    using lock = new FileLock(this.folder.lock(digest));
    for await (const _ of pauses(signal)) if (lock.tryShared()) break;
    const record = readRecord(this.folder, digest);
    if (record && (await isIntact(this.folder, record, signal))) return true;
    unmark(this.folder, digest);
    if (lock.tryExclusive()) this.#discard(digest);
    return false;
  }

  /** Removes what dead processes left. */
  async sweep(): Promise<void> {
    for (const name of readdirSync(this.folder.temporaries)) {
      const key = CacheFolder.keyOfTemporary(name);
      using lock = new FileLock(this.folder.lock(key));
      if (lock.tryExclusive()) this.#sweepTemporaries(key);
    }
    const trash = readdirSync(this.folder.trash);
    await Promise.all(trash.map((name) => removeTree(join(this.folder.trash, name))));
  }

  /** Under the lock of `key`: whoever worked there is dead. */
  #sweepTemporaries(key: string): void {
    for (const name of readdirSync(this.folder.temporaries)) {
      if (CacheFolder.keyOfTemporary(name) !== key) continue;
      this.folder.moveToTrash(join(this.folder.temporaries, name));
    }
  }

  #discard(digest: string): void {
    this.folder.moveToTrash(this.folder.image(digest));
  }

  #digests(): string[] {
    return readdirSync(this.folder.root).filter((name) => DIGEST.test(name));
  }
}

/** Turns of a wait for a lock, which tells nobody when it is free: short pauses first. */
async function* pauses(signal: AbortSignal): AsyncGenerator<void> {
  for (let pauseMs = 2; ; pauseMs = Math.min(pauseMs * 1.5, MAX_PAUSE_MS)) {
    signal.throwIfAborted();
    yield;
    // Uneven, so that several that wait don't meet again and again.
    await abortable(Bun.sleep(pauseMs * (0.5 + Math.random())), signal);
  }
}
