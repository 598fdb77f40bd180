import type { Sandbox } from "../sandbox/sandbox.ts";
import { EditorError } from "./editor-error.ts";

const MAX_FILE_BYTES = 10 * 1024 * 1024;
const MAX_LISTING_BYTES = 1024 * 1024;
const NUL_SEARCH_BYTES = 8192;

/** Folders, an empty entry, and the rest; without the extensions of GNU find. */
const LISTING = `find -L "$1" -maxdepth 2 -type d -print0; printf '\\0'
find -L "$1" -maxdepth 2 ! -type d -print0`;

/** Keeps mode and owner, unlike a fresh file. */
const REWRITE = 'cat >"$1"';

/** Text files and folders of a sandbox, in bounded sizes. */
export class EditorFiles {
  readonly #sandbox: Sandbox;
  readonly #timeoutMs: number;
  readonly #signal: AbortSignal;

  constructor(sandbox: Sandbox, timeoutMs: number, signal: AbortSignal) {
    this.#sandbox = sandbox;
    this.#timeoutMs = timeoutMs;
    this.#signal = signal;
  }

  async exists(path: string): Promise<boolean> {
    const error = await this.#readBytes(path, 0).catch((error) => error);
    return !(isFileError(error) && error.code === "ENOENT");
  }

  /** Null: it is a folder. */
  async read(path: string): Promise<string | null> {
    let bytes: Uint8Array;
    try {
      bytes = await this.#readBytes(path, MAX_FILE_BYTES);
    } catch (error) {
      if (!isFileError(error)) throw error;
      if (error.code === "EISDIR") return null;
      throw unreadable(path, error.code);
    }
    return decode(path, bytes);
  }

  async create(path: string, text: string): Promise<void> {
    try {
      await this.#sandbox.writeFile(path, text, 0o644, this.#signal);
    } catch (error) {
      if (!isFileError(error)) throw error;
      throw new EditorError(`Ran into ${error.code} while trying to write to ${path}`);
    }
  }

  async rewrite(path: string, text: string): Promise<void> {
    const { exitCode, stderr } = await this.#run(REWRITE, path, text);
    if (exitCode === 0) return;
    throw new EditorError(`Ran into ${stderr.trim()} while trying to write to ${path}`);
  }

  /** Two levels deep, folders with a slash at their end, the folder itself first. */
  async list(path: string): Promise<{ shown: string[]; hidden: number }> {
    const { stdout } = await this.#run(LISTING, path);
    const [folders = "", files = ""] = stdout.split("\0\0");
    const names = folders
      .split("\0")
      .map((folder) => `${folder}/`)
      .concat(files.split("\0").filter((file) => file !== ""))
      .sort();
    const base = path.endsWith("/") ? path : `${path}/`;
    const below = (name: string) => name.slice(base.length).split("/");
    const isHidden = (name: string) => below(name).some((part) => part.startsWith("."));
    const top = names.filter((name) => isHidden(name) && !/\/./.test(name.slice(base.length)));
    return { shown: names.filter((name) => !isHidden(name)), hidden: top.length };
  }

  #readBytes(path: string, maxBytes: number): Promise<Uint8Array> {
    return this.#sandbox.readFile(path, maxBytes, this.#signal);
  }

  async #run(script: string, path: string, stdin = "") {
    const result = await this.#sandbox.exec(["sh", "-c", script, "sh", path], {
      stdin,
      timeoutMs: this.#timeoutMs,
      maxOutputBytes: MAX_LISTING_BYTES,
      signal: this.#signal,
    });
    if (!result.timedOut) return result;
    throw new EditorError(`${path} took longer than ${this.#timeoutMs / 1000} seconds.`);
  }
}

function isFileError(error: unknown): error is Error & { code: string } {
  return error instanceof Error && error.name === "FileError";
}

function unreadable(path: string, code: string): EditorError {
  if (code === "ENOENT") {
    const hint = `The path ${path} does not exist. Please provide a valid path.`;
    return EditorError.invalid("path", path, hint);
  }
  if (code === "EFBIG")
    return invalidFile(path, "File is too large. Maximum allowed size is 10MB.");
  if (code === "EINVAL") return invalidFile(path, "It is not a regular file.");
  return new EditorError(`Ran into ${code} while trying to read ${path}`);
}

function invalidFile(path: string, reason: string): EditorError {
  return new EditorError(`File validation failed for ${path}: ${reason}`);
}

function decode(path: string, bytes: Uint8Array): string {
  if (bytes.subarray(0, NUL_SEARCH_BYTES).includes(0)) {
    const reason =
      "File appears to be binary and this file type cannot be read or edited by this tool.";
    throw invalidFile(path, reason);
  }
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    throw new EditorError(
      `The editor only supports UTF-8 encoding files, please use bash commands for files with other encoding: ${path}`,
    );
  }
}
