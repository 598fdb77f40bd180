import { FileError } from "./file-error.ts";
import type { TreePart } from "./tree.ts";

/** The wire format of `supervisor-tree.c`, where the letters are explained. */
const HEADER = 5;
const NUMBER = 4;
const MAX_BYTES = 65_536;
const MAX_NAMES = NUMBER + 2 * 4096;

const TYPE = 0o170000;
/** By the type bits of a mode; 0 where the file could not be opened. */
const WHY_LEFT = new Map([
  [0, "unreadable"],
  [0o010000, "fifo"],
  [0o020000, "device"],
  [0o060000, "device"],
  [0o140000, "socket"],
]);

/** @throws FileError `EINVAL` for a path that leads anywhere but down, or that has no place in a record. */
export function encodePart(part: TreePart): Buffer {
  if (part.kind === "data") return record("b", Buffer.from(part.bytes));
  if (part.kind === "left") return Buffer.alloc(0);
  const path = Buffer.from(part.path);
  if (!isPlainPath(part.path) || path.length >= 4096) throw unusable(part.path);
  if (part.kind !== "link") {
    return record(part.kind === "file" ? "f" : "d", numbered(part.mode, path));
  }
  const target = Buffer.from(part.target);
  if (part.target.includes("\0") || target.length === 0 || target.length >= 4096)
    throw unusable(part.path);
  return record("l", numbered(path.length, Buffer.concat([path, target])));
}

function record(letter: string, payload: Buffer): Buffer {
  const head = Buffer.alloc(HEADER);
  head.write(letter, "latin1");
  head.writeUInt32LE(payload.length, 1);
  return Buffer.concat([head, payload]);
}

function numbered(number: number, text: Buffer): Buffer {
  const head = Buffer.alloc(NUMBER);
  head.writeUInt32LE(number);
  return Buffer.concat([head, text]);
}

/** Below its folder, whatever it is joined to. */
export function isPlainPath(path: string): boolean {
  return path.split("/").every((name) => !["", ".", ".."].includes(name)) && !path.includes("\0");
}

function unusable(path: string): FileError {
  return new FileError(
    "EINVAL",
    path,
    "write",
    "a path has to lead down and to be of usual length",
  );
}

/** Cuts records out of a stream that the sandbox wrote: anything may be in it, and none of it is believed. */
export class TreeDecoder {
  readonly #verb: string;
  #rest: Buffer = Buffer.alloc(0);
  /** What bytes would belong to. */
  #file: "open" | "left" | "none" = "none";

  constructor(verb: string) {
    this.#verb = verb;
  }

  get atBoundary(): boolean {
    return this.#rest.length === 0;
  }

  /** @throws FileError what the sandbox says went wrong, or `EPROTO`. */
  *push(chunk: Buffer): Generator<TreePart> {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= HEADER) {
      const letter = String.fromCharCode(bytes[at] ?? 0);
      const length = bytes.readUInt32LE(at + 1);
      if (length > (letter === "b" ? MAX_BYTES : MAX_NAMES)) throw this.#broken();
      if (bytes.length - at < HEADER + length) break;
      const part = this.#part(letter, bytes.subarray(at + HEADER, at + HEADER + length));
      if (part !== null) yield part;
      at += HEADER + length;
    }
    this.#rest = bytes.subarray(at);
  }

  #part(letter: string, payload: Buffer): TreePart | null {
    if (letter === "b") {
      if (this.#file === "none") throw this.#broken();
      return this.#file === "left" ? null : { kind: "data", bytes: payload };
    }
    if (payload.length < NUMBER) throw this.#broken();
    const number = payload.readUInt32LE(0);
    const text = payload.subarray(NUMBER);
    if (letter === "x") throw new FileError(number, text.toString(), this.#verb);
    const path = utf8(letter === "l" ? text.subarray(0, number) : text);
    const target = letter === "l" ? utf8(text.subarray(number)) : "";
    this.#file = letter === "f" ? (path === null ? "left" : "open") : "none";
    if (path === null || target === null) return { kind: "left", path: `${text}`, why: "name" };
    if (!isPlainPath(path)) throw this.#broken();
    if (letter === "f") return { kind: "file", path, mode: number & 0o777 };
    if (letter === "d") return { kind: "folder", path, mode: number & 0o777 };
    if (letter === "l") return { kind: "link", path, target };
    if (letter !== "o") throw this.#broken();
    return { kind: "left", path, why: WHY_LEFT.get(number & TYPE) ?? "changed" };
  }

  #broken(): FileError {
    return new FileError("EPROTO", ".", this.#verb);
  }
}

/** Null: bytes that are no text, which no path of ours could name again. */
function utf8(bytes: Buffer): string | null {
  const text = bytes.toString("utf8");
  return Buffer.from(text).equals(bytes) ? text : null;
}
