import { closeSync, constants, fstatSync, openSync } from "node:fs";
import type { Socket } from "bun";
import type { BoundedOutput } from "../lib/bounded-output.ts";

/** Of one message from the driver, which is the sandbox's and may say anything. */
const MAX_MESSAGE_BYTES = 1 << 20;
const LENGTH_BYTES = 4;
/** Not in Bun's constants: opens the name and not what it leads to. */
const O_PATH = 0o10000000;

const MAX_IMAGES = 8;
/** The kernel's PATH_MAX. */
const MAX_PATH = 4096;
const NOTHING = Buffer.alloc(0);

type Cell = {
  output: BoundedOutput;
  /** Of the output, still to come at most. */
  leftBytes: number;
  images: string[];
  done(end: CellEnd | null): void;
};

export type CellEnd = { ok: boolean; cut: number; cwd: string; python: string; images: string[] };

/**
 * One connection to the driver; see its docstring for the messages. It is closed at the first byte beyond what the
 * driver may send: hello once, then for each cell so much output, so many images and one end, and nothing between
 * cells. So a flood costs the thread, and with it all other sandboxes, a bounded amount of work.
 */
export class PythonConnection {
  readonly hello: Promise<boolean>;
  readonly #hello = Promise.withResolvers<boolean>();
  #socket: Socket | null = null;
  /** Of a length or a message that has not come whole. */
  #partial: Buffer | null = null;
  #partialBytes = 0;
  #wantedBytes = LENGTH_BYTES;
  #isLength = true;
  #greeted = false;
  #closed = false;
  #unsent: Buffer = NOTHING;
  #cell: Cell | null = null;

  private constructor() {
    this.hello = this.#hello.promise;
  }

  /**
   * Null: nobody listens there. The sandbox may have put a link there instead, to a socket of the host,
   * so that the name is opened without following and then connected to by descriptor. That also makes
   * any path short enough for a socket's address.
   */
  static async open(path: string): Promise<PythonConnection | null> {
    let fd: number;
    try {
      fd = openSync(path, O_PATH | constants.O_NOFOLLOW);
    } catch {
      return null;
    }
    try {
      if (!fstatSync(fd).isSocket()) return null;
      const connection = new PythonConnection();
      connection.#socket = await Bun.connect({
        unix: `/proc/self/fd/${fd}`,
        socket: {
          data: (_socket, bytes) => connection.#receive(bytes),
          drain: () => connection.#flush(),
          close: () => connection.close(),
          error: () => connection.close(),
        },
      });
      if (!connection.#closed) return connection;
      connection.#socket.terminate();
      return null;
    } catch {
      return null;
    } finally {
      closeSync(fd);
    }
  }

  get open(): boolean {
    return !this.#closed;
  }

  /** Null: the driver went away. */
  run(code: string, maxBytes: number, output: BoundedOutput): Promise<CellEnd | null> {
    // Room for the length, which comes in front.
    const request = Buffer.from(`0000${JSON.stringify({ code, max_bytes: maxBytes })}`);
    request.writeUInt32LE(request.length - LENGTH_BYTES);
    this.#unsent = request;
    return new Promise((done) => {
      this.#cell = { output, leftBytes: maxBytes, images: [], done };
      this.#flush();
    });
  }

  close(): void {
    this.#socket?.terminate();
    this.#socket = null;
    this.#closed = true;
    this.#hello.resolve(false);
    this.#end(null);
  }

  #end(end: CellEnd | null): void {
    const cell = this.#cell;
    this.#cell = null;
    cell?.done(end);
  }

  #flush(): void {
    const written = this.#socket?.write(this.#unsent) ?? -1;
    if (written < 0) this.close();
    else this.#unsent = this.#unsent.subarray(written);
  }

  #receive(chunk: Buffer): void {
    for (let at = 0; at < chunk.length && !this.#closed; ) {
      const part = chunk.subarray(at, at + this.#wantedBytes - this.#partialBytes);
      at += part.length;
      if (part.length === this.#wantedBytes) {
        this.#takeWhole(part);
        continue;
      }
      this.#partial ??= Buffer.allocUnsafe(this.#wantedBytes);
      this.#partial.set(part, this.#partialBytes);
      this.#partialBytes += part.length;
      if (this.#partialBytes === this.#wantedBytes) this.#takeWhole(this.#partial);
    }
  }

  /** A length, or the message that it announced. */
  #takeWhole(bytes: Buffer): void {
    this.#partial = null;
    this.#partialBytes = 0;
    if (this.#isLength) {
      this.#wantedBytes = bytes.readUInt32LE();
      if (this.#wantedBytes === 0 || this.#wantedBytes > this.#longest()) this.close();
    } else {
      this.#wantedBytes = LENGTH_BYTES;
      if (!this.#take(bytes.toString("latin1", 0, 1), bytes.subarray(1))) this.close();
    }
    this.#isLength = !this.#isLength;
  }

  /** Hello is one letter. */
  #longest(): number {
    return this.#greeted ? MAX_MESSAGE_BYTES : 1;
  }

  /** Returns whether the driver may send that now. */
  #take(kind: string, payload: Buffer): boolean {
    if (!this.#greeted) {
      this.#greeted = kind === "h" && payload.length === 0;
      this.#hello.resolve(this.#greeted);
      return this.#greeted;
    }
    const cell = this.#cell;
    if (cell === null) return false;
    if (kind === "o") {
      cell.leftBytes -= payload.length;
      if (payload.length === 0 || cell.leftBytes < 0) return false;
      cell.output.push(payload);
      return true;
    }
    if (kind === "i") return cell.images.push(imageOf(payload)) <= MAX_IMAGES;
    if (kind !== "d") return false;
    const end = parseEnd(
      payload,
      cell.images.filter((image) => image !== ""),
    );
    this.#end(end);
    return end !== null;
  }
}

/** As a data URL; empty where it is none. */
function imageOf(payload: Buffer): string {
  const base64 = payload.toString("latin1");
  return /^[A-Za-z0-9+/]+=*$/.test(base64) ? `data:image/png;base64,${base64}` : "";
}

function parseEnd(payload: Buffer, images: string[]): CellEnd | null {
  try {
    const { ok, cut, cwd, python } = JSON.parse(payload.toString());
    return {
      ok: ok === true,
      cut: Number.isSafeInteger(cut) && cut > 0 ? cut : 0,
      cwd: pathOf(cwd),
      python: pathOf(python),
      images,
    };
  } catch {
    return null;
  }
}

/** What is no path is left out: it stands in every answer that the model gets. */
function pathOf(value: unknown): string {
  return typeof value === "string" && value.length <= MAX_PATH ? value : "";
}
