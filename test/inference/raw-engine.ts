import net, { type Socket } from "node:net";

type RawEngine = AsyncDisposable & {
  url: string;
  /** Whole requests in order: head and body. */
  requests: string[];
  connections: number;
  open: number;
};

/** A server that answers each whole request with whatever `answer` writes, HTTP or not. */
export async function rawEngine(
  answer: (socket: Socket, request: string, number: number) => void,
): Promise<RawEngine> {
  const sockets = new Set<Socket>();
  const server = net.createServer((socket) => {
    engine.connections++;
    engine.open++;
    sockets.add(socket);
    let received = "";
    socket.on("data", (chunk) => {
      received += chunk.toString("latin1");
      const bodyAt = received.indexOf("\r\n\r\n") + 4;
      if (bodyAt === 3) return;
      const length = Number(/content-length: (\d+)/i.exec(received)?.[1] ?? 0);
      if (received.length < bodyAt + length) return;
      engine.requests.push(received.slice(0, bodyAt + length));
      received = received.slice(bodyAt + length);
      answer(socket, engine.requests.at(-1) ?? "", engine.requests.length - 1);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      engine.open--;
      sockets.delete(socket);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as net.AddressInfo;
  const engine: RawEngine = {
    url: `http://127.0.0.1:${port}/v1`,
    requests: [],
    connections: 0,
    open: 0,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
  return engine;
}

export function httpReply(
  body: string,
  status = 200,
  headers: Record<string, string> = {},
): string {
  const all = {
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
    ...headers,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}`);
  return [`HTTP/1.1 ${status} Status`, ...lines, "", body].join("\r\n");
}

export function completion(message: object, finish_reason: string | null = "stop"): string {
  const usage = { prompt_tokens: 7, completion_tokens: 2, total_tokens: 9 };
  return JSON.stringify({ choices: [{ index: 0, message, finish_reason }], usage });
}

export const HELLO = completion({ role: "assistant", content: "hello" });
