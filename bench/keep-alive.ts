import type { Socket } from "bun";

export type Target = { hostname: string; port: number } | { unix: string };
type Waiting = { resolve(): void; reject(error: Error): void };

/**
 * One connection that sends one request after another. It reads no more of an answer than its status and its
 * length, so that little of what is measured is the client's own; `fetch` costs as much as the server.
 */
export class KeepAlive {
  readonly #socket: Socket<unknown>;
  #received = Buffer.alloc(0);
  #waiting: Waiting | null = null;

  static async open(target: Target): Promise<KeepAlive> {
    const socket = await Bun.connect<{ client?: KeepAlive }>({
      ...(target as { hostname: string; port: number }),
      data: {},
      socket: {
        data: ({ data }, chunk) => data.client?.take(chunk),
        close: ({ data }) => data.client?.fail(new Error("the server closed the connection")),
      },
    });
    const client = new KeepAlive(socket);
    socket.data.client = client;
    return client;
  }

  private constructor(socket: Socket<unknown>) {
    this.#socket = socket;
  }

  /** Resolves when the whole answer is there. @throws Error unless it is a 2xx */
  send(request: Buffer): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting = { resolve, reject };
      const written = this.#socket.write(request);
      if (written < request.length) this.fail(new Error("the socket takes no more"));
    });
  }

  /** Sends a request whose answer nobody waits for. */
  start(request: Buffer): void {
    this.#socket.write(request);
  }

  end(): void {
    this.#waiting = null;
    this.#socket.end();
  }

  private take(chunk: Buffer): void {
    this.#received = Buffer.concat([this.#received, chunk]);
    const headEnd = this.#received.indexOf("\r\n\r\n");
    if (headEnd < 0) return;
    const head = this.#received.toString("latin1", 0, headEnd);
    const length = /content-length: *(\d+)/i.exec(head)?.[1];
    const end = headEnd + 4 + Number(length);
    if (this.#received.length < end) return;
    const isGood = length !== undefined && /^HTTP\/1.1 2/.test(head);
    if (!isGood) {
      this.fail(new Error(this.#received.toString("utf8", 0, 500)));
      return;
    }
    this.#received = this.#received.subarray(end);
    const waiting = this.#waiting;
    this.#waiting = null;
    waiting?.resolve();
  }

  private fail(error: Error): void {
    this.#waiting?.reject(error);
    this.#waiting = null;
  }
}

export function request(method: "GET" | "POST", path: string, body?: unknown): Buffer {
  const text = body === undefined ? "" : JSON.stringify(body);
  const length = Buffer.byteLength(text);
  const type =
    body === undefined ? "" : `Content-Type: application/json\r\nContent-Length: ${length}\r\n`;
  return Buffer.from(`${method} ${path} HTTP/1.1\r\nHost: localhost\r\n${type}\r\n${text}`);
}
