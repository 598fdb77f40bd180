import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, opendir, readlink } from "node:fs/promises";
import { join } from "node:path";
import { removeTree } from "../lib/remove-tree.ts";
import { FileError } from "./file-error.ts";
import type { TreePart, TreeSource, TreeTotals } from "./tree.ts";

const CHUNK_BYTES = 65_536;

export function partsOf(source: TreeSource): AsyncIterable<TreePart> | Iterable<TreePart> {
  if ("parts" in source) return source.parts;
  return "folder" in source ? folderParts(source.folder) : textParts(source.files);
}

function* textParts(files: Record<string, string | Uint8Array>): Generator<TreePart> {
  for (const [path, content] of Object.entries(files)) {
    yield { kind: "file", path, mode: 0o644 };
    const bytes = Buffer.from(content);
    for (let at = 0; at < bytes.length; at += CHUNK_BYTES) {
      yield { kind: "data", bytes: bytes.subarray(at, at + CHUNK_BYTES) };
    }
  }
}

/** A folder of the host's as it is; links stay links, whatever they lead to. */
async function* folderParts(folder: string, below = ""): AsyncGenerator<TreePart> {
  for await (const { name } of await opendir(join(folder, below))) {
    const path = below === "" ? name : `${below}/${name}`;
    const full = join(folder, path);
    const stat = await lstat(full);
    const mode = stat.mode & 0o777;
    if (stat.isSymbolicLink()) yield { kind: "link", path, target: await readlink(full) };
    else if (stat.isFile()) yield* fileParts(full, path, mode);
    else if (stat.isDirectory()) {
      yield { kind: "folder", path, mode };
      yield* folderParts(folder, path);
    } else yield { kind: "left", path, why: "device" };
  }
}

async function* fileParts(full: string, path: string, mode: number): AsyncGenerator<TreePart> {
  await using file = await open(full, constants.O_RDONLY | constants.O_NOFOLLOW);
  yield { kind: "file", path, mode };
  for (;;) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(CHUNK_BYTES), 0, CHUNK_BYTES);
    if (bytesRead === 0) return;
    yield { kind: "data", bytes: buffer.subarray(0, bytesRead) };
  }
}

/**
 * Into a new folder of the host's that only its owner may enter. Files and folders only: no link is made here, so
 * that none can be followed, now or by whoever reads the folder later. After a failure there is no folder.
 */
export async function saveParts(
  parts: AsyncIterable<TreePart>,
  folder: string,
): Promise<TreeTotals> {
  await mkdir(folder, { mode: 0o700 });
  const saved: TreeTotals = { files: 0, bytes: 0, left: [] };
  let file: FileHandle | null = null;
  try {
    for await (const part of parts) {
      if (part.kind === "data") {
        await writeAll(file as FileHandle, part.bytes);
        saved.bytes += part.bytes.length;
        continue;
      }
      await file?.close();
      file = null;
      if (part.kind === "folder") await make(part.path, mkdir(join(folder, part.path), 0o700));
      else if (part.kind === "file") {
        file = await make(part.path, openNew(join(folder, part.path), part.mode));
        saved.files++;
      } else saved.left.push({ path: part.path, why: part.kind === "link" ? "link" : part.why });
    }
    await file?.close();
    return saved;
  } catch (error) {
    await file?.close().catch(() => {});
    await removeTree(folder);
    throw error;
  }
}

/** A name that comes twice, or in a folder that did not come: the tree was changed while it was read. */
async function make<T>(path: string, making: Promise<T>): Promise<T> {
  try {
    return await making;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!["EEXIST", "ENOENT", "ENOTDIR"].includes(code ?? "")) throw error;
    throw new FileError("EBUSY", path, "save", "it changed while it was read");
  }
}

function openNew(path: string, mode: number): Promise<FileHandle> {
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants;
  return open(path, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, mode & 0o100 ? 0o700 : 0o600);
}

async function writeAll(file: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    at += (await file.write(bytes, at, bytes.length - at)).bytesWritten;
  }
}
