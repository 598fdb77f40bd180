import type { Sandbox } from "../../sandbox/sandbox.ts";

export const SHORT = { timeoutMs: 30_000, maxOutputBytes: 10_000 };
const TREE = { maxBytes: 256 << 20, maxEntries: 20_000 };

/** Folders that Harbor's environments have from the start. */
export const LOGS = ["/logs/agent", "/logs/verifier", "/logs/artifacts"];

/** Puts a folder's files in place of what is there. */
export async function putFolder(
  sandbox: Sandbox,
  folder: string,
  files: Record<string, string>,
  signal: AbortSignal,
): Promise<void> {
  const clear = `chmod -R u+rwX ${folder} 2>/dev/null; rm -rf ${folder} 2>/dev/null || find ${folder} -mindepth 1 -delete 2>/dev/null; mkdir -p ${folder}`;
  await sandbox.exec(["bash", "-c", clear], { ...SHORT, signal });
  await addFolder(sandbox, folder, files, signal);
}

/** Lays files over what is there. */
export async function addFolder(
  sandbox: Sandbox,
  folder: string,
  files: Record<string, string>,
  signal: AbortSignal,
): Promise<void> {
  const decoded = Object.entries(files).map(([path, base64]) => [
    path,
    Buffer.from(base64, "base64"),
  ]);
  await sandbox.writeTree(folder, { files: Object.fromEntries(decoded) }, TREE, signal);
}

export async function readText(
  sandbox: Sandbox,
  path: string,
  maxBytes: number,
  signal: AbortSignal,
): Promise<string | null> {
  try {
    return Buffer.from(await sandbox.readFile(path, maxBytes, signal)).toString();
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof Error && error.name === "FileError") return null;
    throw error;
  }
}
