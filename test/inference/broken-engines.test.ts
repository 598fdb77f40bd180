import { expect, test } from "bun:test";
import net from "node:net";
import { waitFor } from "../support/wait-for.ts";
import { failureOf, setup } from "./chat-setup.ts";
import { completion, HELLO, httpReply, rawEngine } from "./raw-engine.ts";

const requestIds = (requests: string[]) =>
  requests.map((request) => /x-request-id: (\S+)/i.exec(request)?.[1]);

test("a kept connection that the engine closed costs one retry under a new request id", async () => {
  await using engine = await rawEngine((socket, _request, number) => {
    if (number === 1) socket.resetAndDestroy();
    else socket.write(httpReply(HELLO));
  });
  using client = setup(engine.url);
  await client.chat({ requestId: "job-1.0" });
  expect((await client.chat({ requestId: "job-1.1" })).message.content).toBe("hello");
  expect(requestIds(engine.requests)).toEqual(["job-1.0", "job-1.1", "job-1.1.r1"]);
  expect(engine.connections).toBe(2);
});

test("a connection that ends before an answer for the second time is a failure", async () => {
  await using engine = await rawEngine((socket) => socket.end());
  using client = setup(engine.url, { apiKey: "sk-1" });
  expect(await failureOf(client.chat())).toEqual({
    code: "engine_unreachable",
    message: `backend "b1" (${engine.url}): it closed the connection without an answer`,
    boundary: "engine",
    retryable: true,
  });
  expect(engine.requests).toHaveLength(2);
});

test("a connection that is reset within the answer is lost, and not tried again", async () => {
  await using engine = await rawEngine((socket) => {
    socket.write(httpReply(HELLO).slice(0, -10), () =>
      setTimeout(() => socket.resetAndDestroy(), 20),
    );
  });
  using client = setup(engine.url);
  const { code, message } = await failureOf(client.chat());
  expect(code).toBe("engine_unreachable");
  expect(message).toContain("the connection was lost");
  expect(engine.requests).toHaveLength(1);
});

test("a port where nobody listens is unreachable, and not tried again", async () => {
  const engine = await rawEngine(() => {});
  await engine[Symbol.asyncDispose]();
  using client = setup(engine.url);
  const { code, message } = await failureOf(client.chat());
  expect(code).toBe("engine_unreachable");
  expect(message).toContain(engine.url);
  expect(message).toContain("ECONNREFUSED");
});

const CUT = httpReply(HELLO).slice(0, -10);

test.each([
  ["bytes that are not HTTP", "\u0000\u0001garbage\r\n\r\n", "engine_bad_reply"],
  ["headers without an end", `HTTP/1.1 200 OK\r\nX: ${"x".repeat(100_000)}`, "engine_bad_reply"],
  ["a body that is not JSON", httpReply("<html>"), "engine_bad_reply"],
  ["a body that is not UTF-8", httpReply("").replace("th: 0", "th: 1"), "engine_bad_reply"],
  ["an empty body", httpReply(""), "engine_bad_reply"],
  ["JSON of another shape", httpReply('{"choices":[]}'), "engine_bad_reply"],
  ["an error with status 200", httpReply('{"error":{"message":"no"}}'), "engine_bad_reply"],
  ["no finish reason", httpReply(completion({ content: "a" }, null)), "engine_bad_reply"],
  ["an unknown one", httpReply(completion({ content: "a" }, "error")), "engine_bad_reply"],
  ["an encoding", httpReply(HELLO, 200, { "Content-Encoding": "gzip" }), "engine_bad_reply"],
  ["a close within the body", CUT, "engine_unreachable"],
  ["a redirect", httpReply("", 307, { Location: "http://10.0.0.1/" }), "engine_refused"],
])("an engine that answers with %s is a typed failure", async (_what, bytes, code) => {
  await using engine = await rawEngine((socket) => {
    const notUtf8 = bytes.includes("Content-Length: 1\r");
    socket.end(notUtf8 ? Buffer.concat([Buffer.from(bytes), Buffer.from([0xff])]) : bytes);
  });
  using client = setup(engine.url);
  const failure = await failureOf(client.chat());
  expect(failure.code).toBe(code as typeof failure.code);
  expect(failure.message).toStartWith(`backend "b1" (${engine.url})`);
  expect(failure.message.length).toBeLessThan(1_000);
  expect(engine.requests).toHaveLength(1);
});

test("a reply is cut off at the byte limit while it still comes", async () => {
  await using engine = await rawEngine((socket) => {
    const more = () => {
      while (!socket.destroyed && socket.write("x".repeat(10_000))) {}
    };
    socket.on("drain", more);
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000000000\r\n\r\n");
    more();
  });
  using client = setup(engine.url);
  expect(await failureOf(client.chat({ maxReplyBytes: 50_000 }))).toMatchObject({
    code: "engine_bad_reply",
    message: `backend "b1" (${engine.url}): the reply is larger than 50000 bytes`,
  });
  await waitFor(() => engine.open === 0, "the connection to end");
});

test.each([
  ["an answer", () => {}],
  ["the rest of the headers", (write: (text: string) => void) => write("HTTP/1.1 200 OK\r\nA:")],
  ["the rest of the body", (write: (text: string) => void) => write(CUT)],
])("the call's own time limit ends the wait for %s", async (_what, begin) => {
  await using engine = await rawEngine((socket) => begin((text) => socket.write(text)));
  using client = setup(engine.url);
  expect(await failureOf(client.chat({ timeoutMs: 100 }))).toEqual({
    code: "engine_timeout",
    message: `backend "b1" (${engine.url}) did not answer within 100 ms`,
    boundary: "engine",
    retryable: true,
  });
  await waitFor(() => engine.open === 0, "the connection to end");
});

test("an engine that drips bytes does not escape the time limit", async () => {
  await using engine = await rawEngine((socket) => {
    socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n");
    const timer = setInterval(() => socket.write("x"), 5);
    socket.on("close", () => clearInterval(timer));
  });
  using client = setup(engine.url);
  expect((await failureOf(client.chat({ timeoutMs: 100 }))).code).toBe("engine_timeout");
  await waitFor(() => engine.open === 0, "the connection to end");
});

test.each([
  ["headers", () => {}],
  ["body", (write: (text: string) => void) => write(CUT)],
  [
    "pause before a retry",
    (write: (text: string) => void) => write(httpReply("{}", 503, { "Retry-After": "10" })),
  ],
])("an abort during the %s ends the call with its own reason", async (_what, begin) => {
  await using engine = await rawEngine((socket) => begin((text) => socket.write(text)));
  using client = setup(engine.url);
  const controller = new AbortController();
  const reason = { code: "cancelled" };
  const call = client.chat({}, controller.signal).catch((error) => error);
  await waitFor(() => engine.requests.length === 1, "the request");
  controller.abort(reason);
  expect(await call).toBe(reason);
  client[Symbol.dispose]();
  await waitFor(() => engine.open === 0, "the connection to end");
});

test("an abort while the connection is made ends the call with its own reason", async () => {
  // A listener that accepts nobody: once its queue is full, further connections hang.
  const script = `require("node:net").createServer().listen({ port: 0, host: "127.0.0.1", backlog: 1 },
    function () {
      require("node:fs").writeSync(1, String(this.address().port));
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
    });`;
  const listener = Bun.spawn([process.execPath, "-e", script], { stdout: "pipe" });
  const filling: net.Socket[] = [];
  try {
    const { value } = await listener.stdout.getReader().read();
    const port = Number(new TextDecoder().decode(value));
    for (let i = 0; i < 8; i++) filling.push(net.connect(port, "127.0.0.1").on("error", () => {}));
    using client = setup(`http://127.0.0.1:${port}/v1`);
    const controller = new AbortController();
    const reason = new Error("cancelled");
    const call = client.chat({}, controller.signal).catch((error) => error);
    setImmediate(() => controller.abort(reason));
    expect(await call).toBe(reason);
    expect((await failureOf(client.chat({ timeoutMs: 50 }))).code).toBe("engine_timeout");
  } finally {
    for (const socket of filling) socket.destroy();
    listener.kill("SIGKILL");
    await listener.exited;
  }
});

test("a call whose signal is aborted already sends nothing", async () => {
  await using engine = await rawEngine((socket) => socket.write(httpReply(HELLO)));
  using client = setup(engine.url);
  const reason = new Error("cancelled");
  expect(await client.chat({}, AbortSignal.abort(reason)).catch((error) => error)).toBe(reason);
  expect(engine.connections).toBe(0);
});

test("a busy engine is asked again under new request ids, and only so often", async () => {
  await using engine = await rawEngine((socket) =>
    socket.write(httpReply('{"error":{"message":"queue is full"}}', 429, { "Retry-After": "0" })),
  );
  using client = setup(engine.url);
  expect(await failureOf(client.chat())).toMatchObject({
    code: "engine_overloaded",
    message: `backend "b1" (${engine.url}) answered 429: queue is full`,
  });
  expect(requestIds(engine.requests)).toEqual(["job-1.0", "job-1.0.r1", "job-1.0.r2"]);
  expect(engine.connections).toBe(1);
});

test("a wait that the engine asks for is kept to", async () => {
  const times: number[] = [];
  await using engine = await rawEngine((socket, _request, number) => {
    times.push(performance.now());
    socket.write(number > 0 ? httpReply(HELLO) : httpReply("{}", 503, { "Retry-After": "0.2" }));
  });
  using client = setup(engine.url);
  await client.chat();
  expect((times[1] ?? 0) - (times[0] ?? 0)).toBeGreaterThanOrEqual(199);
});

test.each([
  ["seconds", () => "3600"],
  ["a date", () => new Date(Date.now() + 3_600_000).toUTCString()],
])("a Retry-After in %s, beyond the call's time limit, fails at once", async (_what, after) => {
  await using engine = await rawEngine((socket) =>
    socket.write(httpReply("{}", 503, { "Retry-After": after() })),
  );
  using client = setup(engine.url);
  expect((await failureOf(client.chat())).code).toBe("engine_overloaded");
  expect(engine.requests).toHaveLength(1);
});

test("connections are closed before the engine would close them", async () => {
  await using engine = await rawEngine((socket) => socket.write(httpReply(HELLO)));
  using client = setup(engine.url);
  await client.chat();
  const startMs = performance.now();
  await waitFor(() => engine.open === 0, "the idle connection to end");
  expect(performance.now() - startMs).toBeLessThan(2_500);
});
