import { constants, readlinkSync, realpathSync } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { isAbsolute, sep } from "node:path";
import { ServiceError } from "../errors.ts";
import { requireAllowedUrl } from "../tasks/allowed-url.ts";

export type RowSourceSettings = {
  /** The folder below which files may be read; null: nowhere. */
  folder: string | null;
  allowedUrls: readonly string[];
  timeoutMs: number;
};

/**
 * Where a batch's rows may come from: files below the operator's folder, by absolute path, and URLs below the
 * operator's addresses. So who may submit can't read what the node's user can.
 */
export class RowSource {
  readonly #settings: RowSourceSettings;

  constructor(settings: RowSourceSettings) {
    this.#settings = settings;
  }

  /** @throws ServiceError `invalid_field` where nothing may be read from there */
  check(address: string): void {
    if (!isAbsolute(address)) {
      requireAllowedUrl(address, this.#settings.allowedUrls, "source.url");
      return;
    }
    const { folder } = this.#settings;
    if (folder === null) {
      const mend = "start the server with --rows-dir DIR, or give the rows as instances";
      throw invalidFile("this server reads no files of rows", mend);
    }
    if (!isBelow(folder, address)) throw missing(address);
  }

  /** At most `size` bytes from `offset` on. @throws ServiceError `invalid_field`, `source_unreachable` */
  read(address: string, offset: number, size: number, signal: AbortSignal): Promise<Uint8Array> {
    this.check(address);
    const { folder } = this.#settings;
    return isAbsolute(address) && folder !== null
      ? readFilePart(folder, address, offset, size)
      : this.#readUrlPart(address, offset, size, signal);
  }

  async #readUrlPart(url: string, offset: number, size: number, signal: AbortSignal) {
    const headers = {
      range: `bytes=${offset}-${offset + size - 1}`,
      "accept-encoding": "identity",
    };
    const timeout = AbortSignal.timeout(this.#settings.timeoutMs);
    try {
      const init = { headers, redirect: "error", signal: AbortSignal.any([signal, timeout]) };
      const response = await fetch(url, init as RequestInit);
      if (response.status === 206) return await bodyOf(response, size);
      await response.body?.cancel();
      if (response.status === 416) return new Uint8Array(0);
      throw refused(url, response.status);
    } catch (error) {
      if (error instanceof ServiceError) throw error;
      const message = `${url} can't be read: ${(error as Error).message}`;
      throw new ServiceError("source_unreachable", message, { field: "source.url", cause: error });
    }
  }
}

/** False also for what is not there: which other files there are is nobody's business. */
function isBelow(folder: string, path: string): boolean {
  try {
    return realpathSync(path).startsWith(realpathSync(folder) + sep);
  } catch {
    return false;
  }
}

async function readFilePart(
  folder: string,
  path: string,
  offset: number,
  size: number,
): Promise<Uint8Array> {
  const file = await openFile(path);
  try {
    // Of what is open: a link on the way may have been moved since the path was checked.
    const opened = readlinkSync(`/proc/self/fd/${file.fd}`);
    if (!opened.startsWith(realpathSync(folder) + sep)) throw missing(path);
    const stat = await file.stat();
    if (!stat.isFile()) throw invalidFile(`${path} is no file`, "name a file");
    if (stat.size < offset) throw invalidFile(`${path} is shorter than it was`, "don't change it");
    const { buffer, bytesRead } = await file.read(Buffer.allocUnsafe(size), 0, size, offset);
    return buffer.subarray(0, bytesRead);
  } finally {
    await file.close();
  }
}

async function openFile(path: string): Promise<FileHandle> {
  try {
    // A pipe would be waited for.
    return await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch (error) {
    const why = `${path} can't be read: ${(error as Error).message}`;
    throw invalidFile(why, "name a file that the service's user can read");
  }
}

async function bodyOf(response: Response, size: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  let length = 0;
  // Leaving the loop early ends the connection.
  for await (const part of response.body ?? []) {
    parts.push(part);
    length += part.length;
    if (length > size) throw refused(response.url, response.status);
  }
  return Buffer.concat(parts);
}

function refused(url: string, status: number): ServiceError {
  if (status >= 500 || status === 429) {
    return new ServiceError("source_unreachable", `${url} answers with ${status}`);
  }
  const why = status === 200 || status === 206 ? "gives no parts of a file" : `answers ${status}`;
  const mend = "name a server that answers range requests, or give the rows as a file";
  return new ServiceError("invalid_field", `${url} ${why}`, { field: "source.url", mend });
}

function missing(path: string): ServiceError {
  const mend = "put it below the folder of --rows-dir";
  return invalidFile(`there is no ${path} that batches may read`, mend);
}

function invalidFile(message: string, mend: string): ServiceError {
  return new ServiceError("invalid_field", `source.file: ${message}`, {
    ...{ field: "source.file", mend },
  });
}
