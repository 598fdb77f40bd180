import { abortable } from "../../lib/abortable.ts";
import { parseWithTools } from "../../lib/exact-tools.ts";
import {
  MAX_MESSAGE_BYTES,
  type McpTransport,
  type RpcNotification,
  type RpcRequest,
  type RpcResponse,
} from "./transport.ts";

/**
 * A server that is a program of the operator's, on the node and outside of any sandbox: one JSON text per line. It
 * has its own session, and what it started ends with it.
 */
export class StdioTransport implements McpTransport {
  readonly #process: Bun.Subprocess<"pipe", "pipe", "ignore">;
  readonly #waiting = new Map<number, PromiseWithResolvers<RpcResponse>>();
  #failure: Error | null = null;

  constructor(argv: string[], env: Record<string, string>) {
    this.#process = Bun.spawn(argv, {
      cwd: "/",
      env: { PATH: process.env.PATH ?? "/usr/bin:/bin", ...env },
      stdio: ["pipe", "pipe", "ignore"],
      detached: true,
    });
    this.#read().then(
      () => this.#fail(new Error("the server ended")),
      (error) => this.#fail(error),
    );
  }

  async request(message: RpcRequest, signal: AbortSignal): Promise<RpcResponse> {
    if (this.#failure) throw this.#failure;
    const waiting = Promise.withResolvers<RpcResponse>();
    this.#waiting.set(message.id, waiting);
    try {
      this.#send(message);
      return await abortable(waiting.promise, signal);
    } finally {
      this.#waiting.delete(message.id);
    }
  }

  async notify(message: RpcNotification): Promise<void> {
    this.#send(message);
  }

  agreed(): void {}

  async close(): Promise<void> {
    this.#fail(new Error("the server was closed"));
    try {
      process.kill(-this.#process.pid, "SIGKILL");
    } catch {
      // It has ended by itself.
    }
    await this.#process.exited;
  }

  #send(message: unknown): void {
    this.#process.stdin.write(`${JSON.stringify(message)}\n`);
    this.#process.stdin.flush();
  }

  async #read(): Promise<void> {
    const decoder = new TextDecoder();
    let text = "";
    for await (const chunk of this.#process.stdout) {
      text += decoder.decode(chunk, { stream: true });
      const lines = text.split("\n");
      text = lines.pop() ?? "";
      if (text.length > MAX_MESSAGE_BYTES) throw new Error("a message of the server is too long");
      for (const line of lines) if (line.trim() !== "") this.#take(line);
    }
  }

  #take(line: string): void {
    const message = parseWithTools(line) as RpcResponse & { method?: string };
    if (message.method === undefined) this.#waiting.get(message.id as number)?.resolve(message);
    else if (message.id !== undefined) this.#send(answerTo(message.id, message.method));
  }

  #fail(error: Error): void {
    this.#failure ??= error;
    for (const { promise, reject } of this.#waiting.values()) {
      promise.catch(() => {});
      reject(this.#failure);
    }
    this.#waiting.clear();
  }
}

/** What a server asks of its client: we are there, and offer nothing. */
function answerTo(id: unknown, method: string) {
  if (method === "ping") return { jsonrpc: "2.0", id, result: {} };
  return { jsonrpc: "2.0", id, error: { code: -32_601, message: `there is no ${method} here` } };
}
