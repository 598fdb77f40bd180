import { type FileHandle, open } from "node:fs/promises";
import { ServiceError } from "../../errors.ts";

// Source: github.com/apptainer/sif, pkg/sif/sif.go: the global header and the descriptors.
const MAGIC_AT = 32;
const HEADER_BYTES = 128;
const DESCRIPTOR_BYTES = 585;
const MAX_DESCRIPTORS = 4096;
const PARTITION = 0x4004;
const SQUASHFS = 1;
const PRIMARY_SYSTEM = 2;

export const SIF_MAGIC = "SIF_MAGIC";
export const SIF_MAGIC_AT = MAGIC_AT;

/**
 * Where the root file system begins in a SIF. Also finds a file that was cut off.
 * @throws ServiceError `image_invalid`
 */
export async function sifRootOffset(path: string): Promise<number> {
  const file = await open(path);
  try {
    const { size } = await file.stat();
    const header = await bytesAt(file, 0, HEADER_BYTES);
    const total = Number(header.readBigInt64LE(88));
    const at = Number(header.readBigInt64LE(96));
    if (!(total > 0 && total <= MAX_DESCRIPTORS && at >= HEADER_BYTES && at < size)) {
      throw invalid(path, "its header is damaged");
    }
    const table = await bytesAt(file, at, total * DESCRIPTOR_BYTES);
    for (let index = 0; index < total; index++) {
      const root = rootPartition(table.subarray(index * DESCRIPTOR_BYTES));
      if (root === null) continue;
      if (root.fileSystem !== SQUASHFS) throw invalid(path, "its file system is no SquashFS");
      if (root.offset < HEADER_BYTES || root.size <= 0)
        throw invalid(path, "its header is damaged");
      if (root.offset + root.size > size) throw invalid(path, "it is cut off");
      return root.offset;
    }
    throw invalid(path, "it holds no root file system");
  } finally {
    await file.close();
  }
}

function rootPartition(descriptor: Buffer) {
  const used = descriptor.readUInt8(4) !== 0;
  if (!used || descriptor.readInt32LE(0) !== PARTITION) return null;
  const extra = descriptor.subarray(DESCRIPTOR_BYTES - 384);
  if (extra.readInt32LE(4) !== PRIMARY_SYSTEM) return null;
  return {
    fileSystem: extra.readInt32LE(0),
    offset: Number(descriptor.readBigInt64LE(17)),
    size: Number(descriptor.readBigInt64LE(25)),
  };
}

async function bytesAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const buffer = Buffer.alloc(length);
  await file.read(buffer, 0, length, position);
  return buffer;
}

function invalid(path: string, why: string): ServiceError {
  return new ServiceError("image_invalid", `the image ${path} can't be unpacked: ${why}`);
}
