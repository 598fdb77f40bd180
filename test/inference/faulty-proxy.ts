import net, { type Socket } from "node:net";

/** Where in a call something goes wrong. */
export const MOMENTS = ["accept", "headers", "body", "middle", "end"] as const;
export type Moment = (typeof MOMENTS)[number];

/** `close` ends the connection as if all were well. */
export const BREAKS = ["reset", "close", "stall", "garbage"] as const;
export type Break = (typeof BREAKS)[number];

/** What is done to the answer to one call; null lets it pass. */
export type Spoil = { moment: Moment; how: Break } | ((whole: Buffer) => Buffer) | null;

/** A server in front of an engine, which answers as the engine does, but for what `spoilOf` says. */
export async function faultyProxy(port: number, spoilOf: (requestId: string) => Spoil) {
  const sockets = new Set<Socket>();
  const server = net.createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => {});
    socket.on("close", () => sockets.delete(socket));
    let received = Buffer.alloc(0);
    socket.on("data", async (chunk) => {
      received = Buffer.concat([received, chunk as Buffer]);
      if (!isWhole(received)) return;
      const request = received;
      received = Buffer.alloc(0);
      const id = /x-request-id: (\S+)/i.exec(request.toString("latin1"))?.[1] ?? "";
      const spoil = spoilOf(id);
      const whole = await answerOf(port, request);
      if (spoil === null) socket.write(whole);
      else if (typeof spoil === "function") socket.write(spoil(whole));
      else play(socket, whole, spoil.moment, spoil.how);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as net.AddressInfo).port}/v1`,
    get open() {
      return sockets.size;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function isWhole(request: Buffer): boolean {
  const head = request.indexOf("\r\n\r\n");
  if (head < 0) return false;
  const length = /content-length: (\d+)/i.exec(request.subarray(0, head).toString("latin1"))?.[1];
  return request.length >= head + 4 + Number(length ?? 0);
}

/** The bytes that the engine answers with, headers included. */
function answerOf(port: number, request: Buffer): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    const socket = net.connect(port, "127.0.0.1", () => {
      socket.write(
        request.toString("latin1").replace(/connection: keep-alive/i, "Connection: close"),
        "latin1",
      );
    });
    socket.on("data", (chunk) => chunks.push(chunk as Buffer));
    socket.on("end", () => resolve(Buffer.concat(chunks)));
    socket.on("error", reject);
  });
}

function play(socket: Socket, whole: Buffer, moment: Moment, how: Break): void {
  const body = whole.indexOf("\r\n\r\n") + 4;
  const ends: Record<Moment, number> = {
    accept: 0,
    headers: 20,
    body,
    middle: body + Math.floor((whole.length - body) / 2),
    end: whole.length - 3,
  };
  const part = whole.subarray(0, ends[moment]);
  if (how === "stall") socket.write(part);
  else if (how === "close") socket.end(part);
  else if (how === "garbage")
    socket.end(Buffer.concat([part, Buffer.from("\xff\x00<html>\r\n\r\n{{", "latin1")]));
  else if (part.length === 0) socket.resetAndDestroy();
  // Only what was handed to the kernel arrives before the reset.
  else socket.write(part, () => setTimeout(() => socket.resetAndDestroy(), 10));
}
