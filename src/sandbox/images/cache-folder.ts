import { randomUUID } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";

/**
 * The image cache, shared by all services of one user on a node. Only what is complete is ever renamed into
 * place, so that every death leaves whole files, and rubbish in `.tmp` and `.trash`.
 *
 *     <sha256>/rootfs/       an unpacked image
 *     <sha256>/image.json    what it is; written last, so that it is the mark of a whole one
 *     <sha256>/used          its time is that of the last use
 *     .locks/<sha256>        exclusive: who unpacks or removes; shared: each sandbox that uses it
 *     .tmp/<sha256>.<mark>/  being unpacked; whoever has that lock exclusively may delete it
 *     .trash/                being deleted
 *     .names/<name>          the content that a name stands for, and where it came from
 *     .pulled/<sha256>       the content that a registry reference gave, by the hash of the reference
 *     .digests/<dev>-<ino>   the hash of a large file, as long as its size and times stay
 */
export class CacheFolder {
  readonly root: string;

  constructor(root: string) {
    this.root = root;
    for (const name of ["locks", "tmp", "trash", "names", "pulled", "digests"]) {
      mkdirSync(join(root, `.${name}`), { recursive: true, mode: 0o700 });
    }
  }

  image(digest: string): string {
    return join(this.root, digest);
  }

  rootfs(digest: string): string {
    return join(this.root, digest, "rootfs");
  }

  lock(key: string): string {
    return join(this.root, ".locks", key);
  }

  temporary(key: string): string {
    return join(this.root, ".tmp", `${key}.${randomUUID().slice(-12)}`);
  }

  /** The key whose lock protects a folder in `.tmp`. */
  static keyOfTemporary(name: string): string {
    return name.split(".")[0] ?? "";
  }

  get temporaries(): string {
    return join(this.root, ".tmp");
  }

  get trash(): string {
    return join(this.root, ".trash");
  }

  /** Takes a folder out of the way at once; returns where it is now. Null: already gone. */
  moveToTrash(path: string): string | null {
    const target = join(this.trash, `${basename(path)}.${randomUUID().slice(-12)}`);
    try {
      renameSync(path, target);
      return target;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
      throw error;
    }
  }

  get names(): string {
    return join(this.root, ".names");
  }

  name(name: string): string {
    return join(this.root, ".names", name);
  }

  pulled(key: string): string {
    return join(this.root, ".pulled", key);
  }

  fileDigest(dev: bigint, ino: bigint): string {
    return join(this.root, ".digests", `${dev}-${ino}`);
  }
}

/** Null where it is not there, or torn. */
export function readJson<T>(path: string): T | null {
  try {
    return JSON.parse(readFileSync(path, "utf8"));
  } catch {
    return null;
  }
}

export function writeJson(path: string, value: unknown): void {
  const fresh = join(dirname(path), `.${basename(path)}.${randomUUID().slice(-12)}`);
  writeFileSync(fresh, `${JSON.stringify(value)}\n`, { mode: 0o600 });
  renameSync(fresh, path);
}
