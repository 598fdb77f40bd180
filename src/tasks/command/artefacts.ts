import { posix } from "node:path";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Outcome, OutcomeFile } from "../../trajectory/record.ts";

const LIMITS = { maxBytes: 16 * 1024 * 1024, maxEntries: 2000 };

/** Taken from the agent's sandbox; paths are absolute. Links and devices stay behind. */
export async function takeArtefacts(
  sandbox: Sandbox,
  paths: readonly string[],
  signal: AbortSignal,
): Promise<Pick<Outcome, "files" | "flags">> {
  const files: OutcomeFile[] = [];
  const flags: string[] = [];
  for (const path of paths) {
    try {
      files.push(...(await takeOne(sandbox, path, flags, signal)));
    } catch (error) {
      signal.throwIfAborted();
      if (!isFileError(error)) throw error;
      flags.push(`${error.code === "EFBIG" ? "too_large" : "missing"}: ${path}`);
    }
  }
  const bytes = files.reduce((sum, { base64 }) => sum + base64.length, 0);
  if (bytes <= 2 * LIMITS.maxBytes) return { files, flags };
  return { files: [], flags: [...flags, "too_large: all together"] };
}

async function takeOne(
  sandbox: Sandbox,
  path: string,
  flags: string[],
  signal: AbortSignal,
): Promise<OutcomeFile[]> {
  try {
    const bytes = await sandbox.readFile(path, LIMITS.maxBytes, signal);
    return [{ path, base64: Buffer.from(bytes).toString("base64") }];
  } catch (error) {
    if (!isFileError(error) || error.code !== "EISDIR") throw error;
  }
  const files: { path: string; mode: number; chunks: Uint8Array[] }[] = [];
  for await (const part of sandbox.readTree(path, LIMITS, signal)) {
    if (part.kind === "file") {
      files.push({ path: posix.join(path, part.path), mode: part.mode, chunks: [] });
    } else if (part.kind === "data") files.at(-1)?.chunks.push(part.bytes);
    else if (part.kind !== "folder") flags.push(`left: ${posix.join(path, part.path)}`);
  }
  return files.map(({ chunks, ...file }) => ({
    ...file,
    base64: Buffer.concat(chunks).toString("base64"),
  }));
}

export async function putArtefacts(
  sandbox: Sandbox,
  files: readonly OutcomeFile[],
  signal: AbortSignal,
): Promise<void> {
  for (const { path, base64, mode = 0o644 } of files) {
    await sandbox.writeFile(path, Buffer.from(base64, "base64"), mode & 0o777, signal);
  }
}

function isFileError(error: unknown): error is Error & { code: string } {
  return error instanceof Error && error.name === "FileError";
}
