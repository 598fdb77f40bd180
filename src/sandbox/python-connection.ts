import { closeSync, constants, fstatSync, openSync } from "node:fs";
import type { Socket } from "bun";
import type { BoundedOutput } from "../lib/bounded-output.ts";

/** Of one message from the driver, which is the sandbox's and may say anything. */
const MAX_MESSAGE_BYTES = 1 << 20;
/** Not in Bun's constants: opens the name and not what it leads to. */
const O_PATH = 0o10000000;

const MAX_IMAGES = 8;
/** The kernel's PATH_MAX. */
const MAX_PATH = 4096;
const NOTHING = Buffer.alloc(0);

export type CellEnd = { ok: boolean; cut: number; cwd: string; python: string; images: string[] };

/** One connection to the driver; see its docstring for the messages. */
export class PythonConnection {
  readonly hello: Promise<boolean>;
  readonly #hello = Promise.withResolvers<boolean>();
  #socket: Socket | null = null;
  #rest: Buffer = NOTHING;
  #unsent: Buffer = NOTHING;
  #output: BoundedOutput | null = null;
  #images: string[] = [];
  #done: ((done: CellEnd | null) => void) | null = null;

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
      return connection;
    } catch {
      return null;
    } finally {
      closeSync(fd);
    }
  }

  get open(): boolean {
    return this.#socket !== null;
  }

  /** Null: the driver went away. */
  run(code: string, maxBytes: number, output: BoundedOutput): Promise<CellEnd | null> {
    // Room for the length, which comes in front.
    const request = Buffer.from(`0000${JSON.stringify({ code, max_bytes: maxBytes })}`);
    request.writeUInt32LE(request.length - 4);
    this.#output = output;
    this.#images = [];
    this.#unsent = request;
    return new Promise((resolve) => {
      this.#done = resolve;
      this.#flush();
    });
  }

  close(): void {
    this.#socket?.terminate();
    this.#socket = null;
    this.#hello.resolve(false);
    this.#done?.(null);
  }

  #flush(): void {
    const written = this.#socket?.write(this.#unsent) ?? -1;
    if (written < 0) this.close();
    else this.#unsent = this.#unsent.subarray(written);
  }

  #receive(chunk: Buffer): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= 4) {
      const length = bytes.readUInt32LE(at);
      if (length === 0 || length > MAX_MESSAGE_BYTES) {
        this.close();
        return;
      }
      const end = at + 4 + length;
      if (bytes.length < end) break;
      this.#take(String.fromCharCode(bytes.readUInt8(at + 4)), bytes.subarray(at + 5, end));
      at = end;
    }
    this.#rest = at === bytes.length ? NOTHING : Buffer.from(bytes.subarray(at));
  }

  #takeImage(base64: string): void {
    if (this.#images.length >= MAX_IMAGES || !/^[A-Za-z0-9+/]+=*$/.test(base64)) return;
    this.#images.push(`data:image/png;base64,${base64}`);
  }

  #take(kind: string, payload: Buffer): void {
    if (kind === "h") this.#hello.resolve(true);
    else if (kind === "o") this.#output?.push(payload);
    else if (kind === "i") this.#takeImage(payload.toString("latin1"));
    else if (kind === "d") this.#done?.(parseEnd(payload, this.#images));
  }
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
