import { createHash } from "node:crypto";
import { closeSync, existsSync, openSync, readSync, statSync } from "node:fs";
import { bootId } from "../../lib/proc.ts";
import { CacheFolder, readJson } from "./cache-folder.ts";
import { knownDigest } from "./file-digest.ts";
import type { ImageSettings } from "./images.ts";
import { readName } from "./names.ts";
import { readRecord } from "./record.ts";
import { parseReference } from "./reference.ts";
import { SIF_MAGIC, SIF_MAGIC_AT } from "./sif.ts";
import type { SourceKind } from "./source.ts";

/**
 * Where the files of an image are that can be used at once, found by a few system calls. Null: somebody has to
 * go and see, and may have to pull, unpack or look through it.
 */
export function imageOnNode(
  { cacheDir, mountAboveBytes }: Pick<ImageSettings, "cacheDir" | "mountAboveBytes">,
  image: string,
): string | null {
  try {
    const reference = parseReference(image);
    if (reference.kind === "path" && isInPlace(reference.path, mountAboveBytes)) {
      return reference.path;
    }
    if (!existsSync(cacheDir)) return null;
    const folder = new CacheFolder(cacheDir);
    const digest = digestOf(folder, reference);
    const record = digest === null ? null : readRecord(folder, digest);
    return record?.bootId === bootId() ? folder.rootfs(record.digest) : null;
  } catch {
    // What is wrong with it is for the job to say.
    return null;
  }
}

/** A folder, or a SIF that is mounted. */
function isInPlace(path: string, mountAboveBytes: number | null): boolean {
  const found = statSync(path);
  if (found.isDirectory()) return true;
  return mountAboveBytes !== null && found.size > mountAboveBytes && isSif(path);
}

function isSif(path: string): boolean {
  const file = openSync(path, "r");
  try {
    const magic = Buffer.alloc(SIF_MAGIC.length);
    readSync(file, magic, 0, magic.length, SIF_MAGIC_AT);
    return magic.toString("latin1") === SIF_MAGIC;
  } finally {
    closeSync(file);
  }
}

function digestOf(
  folder: CacheFolder,
  reference: ReturnType<typeof parseReference>,
): string | null {
  switch (reference.kind) {
    case "name":
      return readName(folder, reference.name).digest;
    case "registry":
      return readJson<{ digest: string }>(folder.pulled(pullKey(reference.uri)))?.digest ?? null;
    case "archive":
      return contentKey(reference.format, knownDigest(folder, reference.path));
    case "path":
      return knownDigest(folder, reference.path);
  }
}

/** Under which a registry's reference is noted. */
export function pullKey(uri: string): string {
  return createHash("sha256").update(uri).digest("hex");
}

/** The same file read in another way is another image. */
export function contentKey<D extends string | null>(kind: SourceKind, fileDigest: D): D | string {
  if (fileDigest === null || kind === "sif" || kind === "tar") return fileDigest;
  return createHash("sha256").update(`${kind} ${fileDigest}`).digest("hex");
}
