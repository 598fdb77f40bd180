import { expect, test } from "bun:test";
import { createServer, type Socket } from "node:net";
import { httpPost } from "../../src/lib/http-post.ts";
import { post as postWithRetries } from "../../src/verifiers/post-json.ts";

const NEVER = new AbortController().signal;

function sent(url: string, maxReplyBytes = 1000) {
  return { url: new URL(url), headers: {}, body: "{}", maxReplyBytes };
}

/** A TCP server that does with each connection what `serve` does once something came. */
async function tcpServer(serve: (socket: Socket, head: string) => void) {
  const server = createServer((socket) => {
    socket.on("error", () => {});
    socket.once("data", (data) => serve(socket, data.toString()));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return { url: `http://127.0.0.1:${port}/`, [Symbol.dispose]: () => void server.close() };
}

test("as many run at once as are asked for", async () => {
  const COUNT = 600;
  const all = Promise.withResolvers<void>();
  let open = 0;
  using server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch() {
      if (++open === COUNT) all.resolve();
      await all.promise;
      return new Response("done");
    },
  });
  const options = { timeoutMs: 20_000, signal: NEVER };
  const posts = Array.from({ length: COUNT }, () => postWithRetries(server.url.href, {}, options));
  expect((await Promise.all(posts)).every(({ text }) => text === "done")).toBe(true);
});

test("an abort is its reason, and closes the connection", async () => {
  const closed = Promise.withResolvers<void>();
  const aborted = new AbortController();
  using server = await tcpServer((socket) => {
    socket.on("close", () => closed.resolve());
    aborted.abort(new Error("enough"));
  });
  await expect(httpPost(sent(server.url), aborted.signal)).rejects.toThrow("enough");
  await closed.promise;
});

test.each([
  ["nothing", "", /hang up|closed/],
  ["half an answer", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf", /./],
])("a server that sends %s and closes fails the call", async (_what, text, why) => {
  using server = await tcpServer((socket) => socket.end(text));
  await expect(httpPost(sent(server.url), NEVER)).rejects.toThrow(why);
});

test("an answer beyond its bound is not read on, and with a bound of 0 not at all", async () => {
  const head = "HTTP/1.1 201 Created\r\ncontent-length: 100000\r\n\r\n";
  using server = await tcpServer((socket) => socket.write(head + "x".repeat(2000)));
  await expect(httpPost(sent(server.url), NEVER)).rejects.toThrow("too long");
  expect((await httpPost(sent(server.url, 0), NEVER)).status).toBe(201);
});
