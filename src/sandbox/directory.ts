import {
  closeSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  openSync,
  readFileSync,
  renameSync,
  writeFileSync,
} from "node:fs";
import { basename, dirname, join } from "node:path";
import { ServiceError } from "../errors.ts";
import { INSIDE, type SandboxPaths } from "./environment.ts";
import type { DriverName, SandboxHandle } from "./sandbox.ts";
import { STAGE_FOLDER } from "./stage.ts";

/**
 * A sandbox's folder on the host, named after its id and a random mark:
 *
 *     record.json   the handle, as far as it is known: for the reaper
 *     ended         made by whoever ends it first
 *     start.log     what the starter had to say
 *     ro/           bound read-only: supervisor, drivers, text of commands
 *     io/           bound: sockets of the sandbox's servers
 *     overlay/      the writable layer where that is a folder
 *     stage/        where the starter has its root file system; empty on the host
 *     home/         the starter's home; with the host driver also the commands'
 */
export const ENDED_FILE = "ended";
export const LOG_FILE = "start.log";
const RECORD_FILE = "record.json";
const TRASH = ".trash";

export type SandboxRecord = { bootId: string; handle: SandboxHandle };

/** Where commands find things: under neutral names, except without a mount namespace of their own. */
export function sandboxPaths(driver: DriverName, dir: string): SandboxPaths {
  if (driver !== "host") return INSIDE;
  return { assets: join(dir, "ro"), io: join(dir, "io"), home: join(dir, "home") };
}

/**
 * A folder of a name that no other sandbox on the node has, whoever runs it: `ProcessLook` finds
 * survivors by it.
 * @throws ServiceError `instance_invalid` where `id` is no plain file name.
 */
export function sandboxDirectory(root: string, id: string): string {
  const mark = crypto.randomUUID().slice(-12);
  if (/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(id)) return join(root, `${id}.${mark}`);
  throw new ServiceError("instance_invalid", `${id} cannot name a sandbox`);
}

/** @throws ServiceError `disk_full`, or `sandbox_start_failed` */
export function makeDirectory(dir: string, assets: string[]): void {
  try {
    mkdirSync(dirname(dir), { recursive: true, mode: 0o700 });
    mkdirSync(dir, { mode: 0o700 });
    for (const name of ["ro", "io", "overlay", "home", STAGE_FOLDER]) {
      mkdirSync(join(dir, name), { mode: 0o700 });
    }
    mkdirSync(join(dir, "ro", "shell"), { mode: 0o700 });
    for (const asset of assets) linkOrCopy(asset, join(dir, "ro", assetName(asset)));
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const isFull = code === "ENOSPC" || code === "EDQUOT";
    const what = `cannot make ${dir}: ${error}`;
    throw new ServiceError(isFull ? "disk_full" : "sandbox_start_failed", what, { cause: error });
  }
}

/** A link saves the copy, but not across file systems and not without end. */
function linkOrCopy(from: string, to: string): void {
  try {
    linkSync(from, to);
  } catch {
    copyFileSync(from, to);
  }
}

/** `<hash>-supervisor` on disk is `supervisor` inside. */
function assetName(path: string): string {
  return basename(path).replace(/^[0-9a-f]+-/, "");
}

/** Atomic: the reaper reads it after any kind of death. */
export function writeRecord(record: SandboxRecord): void {
  const path = join(record.handle.dir, RECORD_FILE);
  writeFileSync(`${path}.new`, JSON.stringify(record), { mode: 0o600 });
  renameSync(`${path}.new`, path);
}

export function readRecord(dir: string): SandboxRecord | null {
  try {
    return JSON.parse(readFileSync(join(dir, RECORD_FILE), "utf8"));
  } catch {
    return null;
  }
}

/**
 * Whether the caller is the first who ends the sandbox. A second name for its record needs no new inode: to find a free
 * one takes long where many were given back just now.
 */
export function claimEnd(dir: string): boolean {
  const ended = join(dir, ENDED_FILE);
  try {
    linkSync(join(dir, RECORD_FILE), ended);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "EEXIST") return false;
  }
  try {
    closeSync(openSync(ended, "wx", 0o600));
    return true;
  } catch {
    return false;
  }
}

export function trashOf(root: string): string {
  return join(root, TRASH);
}

/** Takes the folder out of the way at once; its contents are removed at leisure. Null: already gone. */
export function moveToTrash(dir: string): string | null {
  const trash = trashOf(dirname(dir));
  const target = join(trash, basename(dir));
  mkdirSync(trash, { recursive: true, mode: 0o700 });
  try {
    renameSync(dir, target);
    return target;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return null;
    throw error;
  }
}
