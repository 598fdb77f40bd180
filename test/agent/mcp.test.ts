import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { type McpAddress, McpServer } from "../../src/agent/mcp/mcp-server.ts";
import { stem } from "../../src/tasks/stem/stem.ts";
import { failureOf } from "../support/failure.ts";
import { calls } from "../support/fake-engine.ts";
import { play } from "../support/play.ts";
import { answerOf } from "./mcp-echo.ts";

const LIMITS = { toolTimeoutMs: 5000, maxOutputBytes: 1000 };
const NEVER = new AbortController().signal;
const STDIO: McpAddress = {
  name: "echo",
  command: [process.execPath, resolve(import.meta.dir, "mcp-echo.ts")],
  env: { MINE: "1" },
};

/** The same server over HTTP: as JSON, or as a stream that says other things before and goes on. */
function overHttp(kind: "json" | "stream") {
  const seen: { method: string; session: string | null; version: string | null }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      const session = request.headers.get("mcp-session-id");
      const version = request.headers.get("mcp-protocol-version");
      const message = request.method === "POST" ? ((await request.json()) as never) : null;
      const method = (message as { method?: string } | null)?.method ?? request.method;
      seen.push({ method, session, version });
      const answer = message && answerOf(message);
      if (!answer) return new Response(null, { status: 202 });
      const headers = method === "initialize" ? { "mcp-session-id": "s7" } : {};
      if (kind === "json") return Response.json(answer, { headers });
      const other = { jsonrpc: "2.0", method: "notifications/progress" };
      const text = [other, answer].map(
        (each) => `event: message\ndata: ${JSON.stringify(each)}\n\n`,
      );
      const body = new ReadableStream({
        // It is never closed: the answer is there before the stream's end.
        start: (controller) => controller.enqueue(new TextEncoder().encode(text.join(""))),
      });
      return new Response(body, { headers: { ...headers, "content-type": "text/event-stream" } });
    },
  });
  const address: McpAddress = {
    name: "echo",
    url: `http://127.0.0.1:${server.port}/mcp`,
    headers: {},
  };
  return { address, seen, [Symbol.dispose]: () => void server.stop(true) };
}

async function said(address: McpAddress, text: string, limits = LIMITS) {
  await using server = await McpServer.connect(address, limits, NEVER);
  return await server.tools[0]?.run({ text });
}

describe("a tool server", () => {
  const ANSWER = { text: "you said hi\n[image]", ok: true };

  test("that is a program is listed and called, and ends with the rollout", async () => {
    const server = await McpServer.connect(STDIO, LIMITS, NEVER);
    expect(server.tools.map(({ schema }) => schema.function)).toEqual([
      {
        name: "echo",
        description: "Says it.",
        parameters: { type: "object", properties: { text: { type: "string" } } },
      },
      { name: "finish", description: "", parameters: { type: "object" } },
    ]);
    const [echo, finish] = server.tools;
    expect(await echo?.run({ text: "hi" })).toEqual(ANSWER);
    expect(await echo?.run({ text: "fail" })).toEqual({ text: "no", ok: false });
    expect(await finish?.run({})).toEqual({ text: "ERROR: there is no finish", ok: false });
    await server[Symbol.asyncDispose]();
    expect((await failureOf(async () => echo?.run({ text: "hi" }))).code).toBe(
      "tool_server_failed",
    );
  });

  test("that is a program sees nothing of the service's environment", async () => {
    process.env.ROLLOUTD_TEST_SECRET = "x";
    const { text = "" } = (await said(STDIO, "env")) ?? {};
    Reflect.deleteProperty(process.env, "ROLLOUTD_TEST_SECRET");
    expect(text.split(" ").filter((name) => !/^(_|PWD|OLDPWD|SHLVL)$/.test(name))).toEqual([
      "MINE",
      "PATH",
    ]);
  });

  test.each(["json", "stream"] as const)(
    "behind a URL is called in its session (%s)",
    async (kind) => {
      using http = overHttp(kind);
      expect(await said(http.address, "hi")).toEqual(ANSWER);
      expect(http.seen).toEqual([
        { method: "initialize", session: null, version: null },
        { method: "notifications/initialized", session: "s7", version: "2025-03-26" },
        { method: "tools/list", session: "s7", version: "2025-03-26" },
        { method: "tools/list", session: "s7", version: "2025-03-26" },
        { method: "tools/call", session: "s7", version: "2025-03-26" },
        { method: "DELETE", session: "s7", version: "2025-03-26" },
      ]);
    },
  );

  test("that is slow is told to the model; one that dies fails the rollout", async () => {
    const slow = await said(STDIO, "sleep", { ...LIMITS, toolTimeoutMs: 50 });
    expect(slow).toEqual({ text: "[The tool gave no answer within 0.05 seconds.]", ok: false });
    const dead = await failureOf(() => said(STDIO, "die"));
    expect([dead.code, dead.boundary, dead.retryable]).toEqual([
      "tool_server_failed",
      "service",
      true,
    ]);
  });

  test.each<[string, McpAddress]>([
    ["that is not there", { name: "x", command: ["/no/such/program"], env: {} }],
    ["that ends at once", { name: "x", command: ["true"], env: {} }],
    ["that speaks something else", { name: "x", command: ["echo", "hello"], env: {} }],
    ["whose port is closed", { name: "x", url: "http://127.0.0.1:1/", headers: {} }],
  ])("%s is a typed failure", async (_what, address) => {
    expect((await failureOf(() => said(address, "hi"))).code).toBe("tool_server_failed");
  });

  test("is left when the rollout is cancelled inside a call", async () => {
    const abort = new AbortController();
    await using server = await McpServer.connect(STDIO, LIMITS, abort.signal);
    const call = server.tools[0]?.run({ text: "sleep" });
    abort.abort("enough");
    expect(await call?.catch((reason) => reason)).toBe("enough");
  });
});

test("an agent has its tools beside its own, and one of the same name under another", async () => {
  const row = { data_source: "mcqa", prompt: "?", options: ["a", "b"], expected_answer: "B" };
  const script = [calls(["echo", { text: "hi" }]), calls(["finish", { message: "\\boxed{B}" }])];
  const t = play(stem, row, script, { mcpServers: [STDIO] });
  expect(await t.verdict()).toMatchObject({ reward: 1 });
  expect(t.toolNames()).toEqual(["execute_ipython_cell", "think", "finish", "echo", "echo_finish"]);
  expect(t.engine.requests[1]?.messages.at(-1)?.content).toBe("you said hi\n[image]");
});
