import { readdirSync, rmSync, statSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bootId } from "../../lib/proc.ts";
import { type CacheFolder, readJson, writeJson } from "./cache-folder.ts";
import type { Source } from "./source.ts";
import { type Inventory, takeInventory } from "./tree.ts";

/** `image.json`: what an unpacked image is. */
export type ImageRecord = {
  format: number;
  digest: string;
  source: Source;
  inventory: Inventory;
  /** The names at the root of the tree: compared at each use. */
  top: string[];
  /** Of the node's run in which the files were last known to be whole. */
  bootId: string;
  unpackedAt: string;
};

/** Changes when what we do to the files changes: older ones are unpacked again. */
const FORMAT = 1;

/** The last step of unpacking into `folder`: from here on it is an image. */
export function writeRecord(
  folder: string,
  about: Pick<ImageRecord, "digest" | "source" | "inventory">,
): void {
  writeFileSync(join(folder, "used"), "", { mode: 0o600 });
  const top = readdirSync(join(folder, "rootfs")).sort();
  const unpackedAt = new Date().toISOString();
  const record = { format: FORMAT, ...about, top, bootId: bootId(), unpackedAt };
  writeJson(join(folder, "image.json"), record satisfies ImageRecord);
}

/** Null unless the image is there and looks whole. A glance: a few system calls. */
export function readRecord(folder: CacheFolder, digest: string): ImageRecord | null {
  const record = readJson<ImageRecord>(join(folder.image(digest), "image.json"));
  if (record?.format !== FORMAT || record.digest !== digest) return null;
  try {
    const top = readdirSync(folder.rootfs(digest)).sort();
    return top.join("/") === record.top.join("/") ? record : null;
  } catch {
    return null;
  }
}

/**
 * Whether an image can be used, under its lock. What was unpacked before the node's last start is looked
 * through once: a power cut can leave files that are empty though their folder is there.
 */
export async function isUsable(
  folder: CacheFolder,
  digest: string,
  signal: AbortSignal,
): Promise<boolean> {
  const record = readRecord(folder, digest);
  if (record === null) return false;
  if (record.bootId === bootId()) return true;
  if (!(await isIntact(folder, record, signal))) return false;
  writeJson(join(folder.image(digest), "image.json"), { ...record, bootId: bootId() });
  return true;
}

/** From here on it is no image, though a sandbox may still have its files. */
export function unmark(folder: CacheFolder, digest: string): void {
  rmSync(join(folder.image(digest), "image.json"), { force: true });
}

/** Looks at every file, though not into it. */
export async function isIntact(
  folder: CacheFolder,
  record: ImageRecord,
  signal: AbortSignal,
): Promise<boolean> {
  try {
    const found = await takeInventory(folder.rootfs(record.digest), signal);
    return found.sha256 === record.inventory.sha256;
  } catch {
    signal.throwIfAborted();
    return false;
  }
}

export function touchUsed(folder: CacheFolder, digest: string): void {
  const now = new Date();
  utimesSync(join(folder.image(digest), "used"), now, now);
}

export function lastUsedMs(folder: CacheFolder, digest: string): number {
  try {
    return statSync(join(folder.image(digest), "used")).mtimeMs;
  } catch {
    return 0;
  }
}
