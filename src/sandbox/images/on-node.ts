import { createHash } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { bootId } from "../../lib/proc.ts";
import { CacheFolder, readJson } from "./cache-folder.ts";
import { knownDigest } from "./file-digest.ts";
import { readName } from "./names.ts";
import { readRecord } from "./record.ts";
import { parseReference } from "./reference.ts";
import type { SourceKind } from "./source.ts";

/**
 * Where the files of an image are that can be used at once, found by a few system calls. Null: somebody has to
 * go and see, and may have to pull, unpack or look through it.
 */
export function imageOnNode(cacheDir: string, image: string): string | null {
  try {
    const reference = parseReference(image);
    if (reference.kind === "path" && statSync(reference.path).isDirectory()) return reference.path;
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
