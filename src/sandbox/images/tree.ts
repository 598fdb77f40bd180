import {
  chmodSync,
  closeSync,
  lchownSync,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
  rmSync,
  type Stats,
} from "node:fs";

/** What a tree holds, cheap to take again: it shows a file that is missing, cut off or changed. */
export type Inventory = {
  files: number;
  /** Of regular files, as far as they take blocks of a disk, hard links counted once. */
  bytes: number;
  /** Over paths, kinds, modes, sizes, times of files and targets of links. */
  sha256: string;
};

type Entry = { path: Buffer; relative: Buffer; stat: Stats };

const TURN_MS = 8;
const BLOCK_BYTES = 512;
const CHUNK_BYTES = 1024 * 1024;
/** Apptainer writes the time of the build into it: the same image would never have the same hash. */
const UNSTABLE = ".singularity.d/labels.json";

/**
 * Everything below `root`, folders before their contents, in the order of the names' bytes, which need be no
 * UTF-8. Links are not followed. Synchronous in short turns: several times as fast as waiting for each file.
 */
async function* walk(root: string, signal: AbortSignal): AsyncGenerator<Entry> {
  const pending: Buffer[] = [Buffer.alloc(0)];
  let turnEndsMs = performance.now() + TURN_MS;
  for (let relative = pending.pop(); relative !== undefined; relative = pending.pop()) {
    if (performance.now() > turnEndsMs) {
      await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
      turnEndsMs = performance.now() + TURN_MS;
    }
    const path = join(Buffer.from(root), relative);
    const stat = lstatSync(path);
    if (relative.length > 0) yield { path, relative, stat };
    if (!stat.isDirectory()) continue;
    const names = readdirSync(path, { encoding: "buffer" });
    names.sort(Buffer.compare).reverse();
    for (const name of names) pending.push(join(relative, name));
  }
}

function join(folder: Buffer, name: Buffer): Buffer {
  if (folder.length === 0 || name.length === 0) return Buffer.concat([folder, name]);
  return Buffer.concat([folder, Buffer.from("/"), name]);
}

/**
 * Makes a fresh tree ours and usable by a sandbox: every file belongs to us and can be read, nothing gains
 * rights, and what is neither file, folder nor link (devices, sockets) is gone.
 */
export async function normaliseTree(root: string, signal: AbortSignal): Promise<void> {
  const uid = process.geteuid?.() ?? 0;
  const gid = process.getegid?.() ?? 0;
  chmodSync(root, 0o755);
  for await (const { path, stat } of walk(root, signal)) {
    if (!isKept(stat)) {
      rmSync(path);
      continue;
    }
    if (stat.uid !== uid || stat.gid !== gid) lchownSync(path, uid, gid);
    if (stat.isSymbolicLink()) continue;
    if ((stat.mode & 0o7777) !== plainMode(stat)) chmodSync(path, plainMode(stat));
  }
}

function isKept(stat: Stats): boolean {
  return stat.isFile() || stat.isDirectory() || stat.isSymbolicLink();
}

/** Owner may read (and change folders, so that they can be deleted); no set-user-ID, no set-group-ID. */
function plainMode(stat: Stats): number {
  return (stat.mode & 0o1777) | (stat.isDirectory() ? 0o700 : 0o400);
}

/** Of a normalised tree. */
export async function takeInventory(root: string, signal: AbortSignal): Promise<Inventory> {
  const hash = new Bun.CryptoHasher("sha256");
  const linked = new Set<number>();
  let files = 0;
  let bytes = 0;
  for await (const { path, relative, stat } of walk(root, signal)) {
    files++;
    const about = describe(path, stat);
    hash.update(relative);
    hash.update(`\0${about}`);
    if (!stat.isFile()) continue;
    hash.update(`${Math.floor(stat.mtimeMs)}\0`);
    if (stat.nlink > 1 && linked.has(stat.ino)) continue;
    if (stat.nlink > 1) linked.add(stat.ino);
    bytes += Math.min(stat.size, stat.blocks * BLOCK_BYTES);
  }
  return { files, bytes, sha256: hash.digest("hex") };
}

/**
 * The address of a tree by its content: the same before and after it is copied and normalised, whoever
 * owns it and whenever it was written.
 */
export async function treeDigest(root: string, signal: AbortSignal): Promise<string> {
  const hash = new Bun.CryptoHasher("sha256");
  const chunk = Buffer.alloc(CHUNK_BYTES);
  for await (const { path, relative, stat } of walk(root, signal)) {
    if (!isKept(stat) || relative.toString() === UNSTABLE) continue;
    hash.update(relative);
    hash.update(`\0${describe(path, stat)}`);
    if (stat.isFile()) await hashContent(path, hash, chunk, signal);
  }
  return hash.digest("hex");
}

function describe(path: Buffer, stat: Stats): string {
  if (stat.isSymbolicLink())
    return `l ${readlinkSync(path, { encoding: "buffer" }).toString("hex")}\0`;
  const mode = plainMode(stat).toString(8);
  return stat.isDirectory() ? `d ${mode}\0` : `f ${mode} ${stat.size}\0`;
}

async function hashContent(
  path: Buffer,
  hash: Bun.CryptoHasher,
  chunk: Buffer,
  signal: AbortSignal,
): Promise<void> {
  const fd = openSync(path, "r");
  try {
    for (;;) {
      const length = readSync(fd, chunk);
      if (length === 0) return;
      hash.update(chunk.subarray(0, length));
      if (length < chunk.length) continue;
      await new Promise((resolve) => setImmediate(resolve));
      signal.throwIfAborted();
    }
  } finally {
    closeSync(fd);
  }
}
