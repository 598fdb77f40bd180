import { closeSync, constants, existsSync, openSync, readSync, statSync } from "node:fs";
import { isAccessible } from "./is-accessible.ts";

const HEAD_BYTES = 64 * 1024;
const ELF = "\x7fELF";
const INTERPRETER = 3;
const MACHINES: Partial<Record<NodeJS.Architecture, number>> = { x64: 62, arm64: 183 };

/**
 * Why this process can't run the program at a path, as far as its file shows it, to follow the path in a sentence.
 * Null: nothing is in the way.
 */
export function whyNotExecutable(path: string): string | null {
  const found = stateOf(path);
  if (typeof found === "string") return found;
  if (found.isDirectory()) return "is a folder";
  if (!found.isFile()) return "is no file";
  if (!isAccessible(path, constants.X_OK)) {
    return "may not be executed by this user (chmod +x it, and mount its disk without noexec)";
  }
  // One may be executed that can't be read.
  if (!isAccessible(path, constants.R_OK)) return null;
  return whyNotLoadable(headOf(path));
}

function stateOf(path: string) {
  try {
    return statSync(path);
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException;
    return code === "ENOENT" ? "is not there" : `can't be reached: ${message}`;
  }
}

function headOf(path: string): Buffer {
  const file = openSync(path, "r");
  try {
    const head = Buffer.alloc(HEAD_BYTES);
    return head.subarray(0, readSync(file, head, 0, HEAD_BYTES, 0));
  } finally {
    closeSync(file);
  }
}

function whyNotLoadable(head: Buffer): string | null {
  const text = head.toString("latin1");
  if (text.startsWith("#!")) {
    const interpreter = /^#!\s*(\S+)/.exec(text)?.[1] ?? "";
    return existsSync(interpreter)
      ? null
      : `needs ${interpreter || "an interpreter"}, which is not there`;
  }
  if (head.length < 64 || !text.startsWith(ELF)) return "is no program: neither ELF nor a script";
  const machine = MACHINES[process.arch];
  if (machine !== undefined && head.readUInt16LE(18) !== machine) {
    return `is a program for another processor than this node's (${process.arch})`;
  }
  const loader = loaderOf(head);
  return loader === null || existsSync(loader)
    ? null
    : `needs the loader ${loader}, which is not there`;
}

/** The program that the kernel starts to load it; null where it needs none. */
function loaderOf(head: Buffer): string | null {
  const begin = Number(head.readBigUInt64LE(32));
  const [size, count] = [head.readUInt16LE(54), head.readUInt16LE(56)];
  for (let at = begin; at < begin + size * count && at + 40 <= head.length; at += size) {
    if (head.readUInt32LE(at) !== INTERPRETER) continue;
    const offset = Number(head.readBigUInt64LE(at + 8));
    const length = Number(head.readBigUInt64LE(at + 32));
    return head.toString("latin1", offset, offset + length).replace(/\0.*$/s, "") || null;
  }
  return null;
}
