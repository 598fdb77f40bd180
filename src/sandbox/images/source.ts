import { open, realpath, stat } from "node:fs/promises";
import { ServiceError } from "../../errors.ts";
import { cannotRead } from "./file-digest.ts";
import type { Reference } from "./reference.ts";
import { SIF_MAGIC, SIF_MAGIC_AT } from "./sif.ts";

export type SourceKind = "sif" | "tar" | "docker-archive" | "oci-archive" | "folder" | "registry";

/** Where an image's files come from. */
export type Source = {
  kind: SourceKind;
  /** A path, or a registry's URI. */
  location: string;
};

const TAR_MAGICS: [at: number, bytes: Buffer][] = [
  [0, Buffer.from("1f8b", "hex")],
  [0, Buffer.from("28b52ffd", "hex")],
  [0, Buffer.from("fd377a585a00", "hex")],
  [257, Buffer.from("ustar")],
];

/** Looks at what `reference` names. @throws ServiceError `image_not_found`, `image_invalid` */
export async function findSource(reference: Exclude<Reference, { kind: "name" }>): Promise<Source> {
  if (reference.kind === "registry") return { kind: "registry", location: reference.uri };
  const { path } = reference;
  const found = await stat(path).catch((error) => {
    throw cannotRead(path, error);
  });
  if (reference.kind === "archive") {
    if (found.isFile()) return { kind: reference.format, location: path };
    throw new ServiceError("image_invalid", `${path} is no ${reference.format}: it is no file`);
  }
  if (found.isDirectory()) return { kind: "folder", location: await realpath(path) };
  if (found.isFile()) return { kind: await kindOfFile(path), location: path };
  throw new ServiceError("image_invalid", `the image ${path} is neither a file nor a folder`);
}

async function kindOfFile(path: string): Promise<SourceKind> {
  const start = await startOf(path);
  const has = (at: number, bytes: Buffer) => start.subarray(at, at + bytes.length).equals(bytes);
  if (has(SIF_MAGIC_AT, Buffer.from(SIF_MAGIC))) return "sif";
  if (TAR_MAGICS.some(([at, bytes]) => has(at, bytes))) return "tar";
  throw new ServiceError("image_invalid", `the image ${path} is no SIF and no tar file`, {
    mend: "see `rolloutd images --help` for what can be an image",
  });
}

async function startOf(path: string): Promise<Buffer> {
  try {
    const file = await open(path);
    const { buffer, bytesRead } = await file.read(Buffer.alloc(512), 0, 512, 0);
    await file.close();
    return buffer.subarray(0, bytesRead);
  } catch (error) {
    throw cannotRead(path, error);
  }
}
