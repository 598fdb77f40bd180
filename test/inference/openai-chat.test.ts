import { expect, test } from "bun:test";
import type { Message, ToolSchema } from "../../src/inference/engine.ts";
import { parseFault } from "../../src/simulator/faults.ts";
import { parsePolicy } from "../../src/simulator/policy.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { waitFor } from "../support/wait-for.ts";
import { failureOf, setup } from "./chat-setup.ts";
import { completion, HELLO, httpReply, rawEngine } from "./raw-engine.ts";

const ECHO = { kind: "echo" } as const;

const bodyOf = (request = "") => JSON.parse(request.slice(request.indexOf("\r\n\r\n")));

test("a call returns the engine's message, its finish reason and its token counts", async () => {
  await using simulator = await startSimulator({ policy: ECHO });
  using client = setup(simulator.url);
  const { durationMs, ...reply } = await client.chat();
  expect(durationMs).toBeGreaterThan(0);
  expect(reply).toEqual({
    message: { role: "assistant", content: "hello" },
    finishReason: "stop",
    promptTokens: 24,
    cachedTokens: 0,
    completionTokens: 6,
    firstTokenMs: null,
  });
});

test("a scripted rollout reads what its tool printed, turn by turn", async () => {
  const line = JSON.stringify({
    match: "two plus two",
    variants: [
      [
        { tool_calls: [{ name: "ipython", arguments: { code: "print(2 + 2)" } }] },
        { content: "\\boxed{{{observation:(\\d+)}}}" },
      ],
    ],
  });
  await using simulator = await startSimulator({ policy: parsePolicy(line, "p.jsonl") });
  using client = setup(simulator.url);
  const messages: Message[] = [{ role: "user", content: "What is two plus two?" }];
  const first = await client.chat({ messages });
  expect(first.message).toEqual({
    role: "assistant",
    content: "",
    tool_calls: [
      {
        id: "call_0_0",
        type: "function",
        function: { name: "ipython", arguments: '{"code":"print(2 + 2)"}' },
      },
    ],
  });
  expect(first.finishReason).toBe("tool_calls");
  messages.push(first.message, { role: "tool", content: "Out: 4\n", tool_call_id: "call_0_0" });
  expect((await client.chat({ messages })).message.content).toBe("\\boxed{4}");
});

test("a request carries what is set, the routing headers and the key", async () => {
  await using engine = await rawEngine((socket) => socket.write(httpReply(HELLO)));
  using client = setup(engine.url, { apiKey: "sk-1", model: "qwen" });
  const tool: ToolSchema = {
    type: "function",
    function: { name: "bash", description: "runs", parameters: { type: "object" } },
  };
  const sampling = { temperature: 1, top_k: 20, min_p: 0.1, repetition_penalty: 1.1, seed: 7 };
  await client.chat({ tools: [tool], sampling });
  await client.chat({ sampling: { max_tokens: 5 } });
  const [first = "", second = ""] = engine.requests;
  const messages = [{ role: "user", content: "hello" }];
  expect(bodyOf(first)).toEqual({
    model: "qwen",
    messages,
    tools: [tool],
    stream: false,
    ...sampling,
  });
  expect(bodyOf(second)).toEqual({ model: "qwen", messages, stream: false, max_tokens: 5 });
  expect(first.split("\r\n")[0]).toBe("POST /v1/chat/completions HTTP/1.1");
  const head = first.slice(0, first.indexOf("\r\n\r\n"));
  const headers = Object.fromEntries(
    head
      .split("\r\n")
      .slice(1)
      .map((line) => line.split(": "))
      .map(([name = "", value]) => [name.toLowerCase(), value]),
  );
  expect(headers).toMatchObject({
    "x-session-id": "job-1",
    "x-smg-routing-key": "job-1",
    "x-request-id": "job-1.0",
    "accept-encoding": "identity",
    "content-type": "application/json",
    authorization: "Bearer sk-1",
  });
  expect(engine.connections).toBe(1);
});

test("a query in the backend's address stays on every call", async () => {
  await using engine = await rawEngine((socket) => socket.write(httpReply(HELLO)));
  using client = setup(`${engine.url}/?api-version=2`);
  await client.chat();
  expect(engine.requests[0]).toStartWith("POST /v1/chat/completions?api-version=2 HTTP/1.1\r\n");
});

test("reasoning is sent under both of its names, as engines read one or the other", async () => {
  await using engine = await rawEngine((socket) => socket.write(httpReply(HELLO)));
  using client = setup(engine.url);
  const thought = { role: "assistant" as const, content: "4", reasoning_content: "2 + 2" };
  await client.chat({ messages: [{ role: "user", content: "?" }, thought] });
  expect(bodyOf(engine.requests[0]).messages[1]).toEqual({ ...thought, reasoning: "2 + 2" });
});

test("arguments that the model wrote badly are sent back as an object that holds them", async () => {
  await using engine = await rawEngine((socket) => socket.write(httpReply(HELLO)));
  using client = setup(engine.url);
  const call = (id: string, text: string) => ({
    id,
    type: "function" as const,
    function: { name: "bash", arguments: text },
  });
  const good = call("a", '{"command":"ls"}');
  const calls = [good, call("b", '{"command":'), call("c", "[1]")];
  await client.chat({ messages: [{ role: "assistant", content: "", tool_calls: calls }] });
  expect(bodyOf(engine.requests[0]).messages[0].tool_calls).toEqual([
    good,
    call("b", '{"malformed_arguments":"{\\"command\\":"}'),
    call("c", '{"malformed_arguments":"[1]"}'),
  ]);
});

test("malformed tool calls in a reply are kept as the model wrote them", async () => {
  const tool_calls = [
    { id: "a", type: "function", function: { name: "bash", arguments: '{"command":' } },
    { function: { name: "bash", arguments: { command: "ls" } } },
    { id: null, function: { arguments: null } },
    "not a call",
  ];
  const body = completion({ content: null, reasoning: "hm", tool_calls }, "tool_calls");
  await using engine = await rawEngine((socket) => socket.write(httpReply(body)));
  using client = setup(engine.url);
  expect((await client.chat()).message).toEqual({
    role: "assistant",
    content: "",
    reasoning_content: "hm",
    tool_calls: [
      { id: "a", type: "function", function: { name: "bash", arguments: '{"command":' } },
      { id: "call_1", type: "function", function: { name: "bash", arguments: '{"command":"ls"}' } },
      { id: "call_2", type: "function", function: { name: "", arguments: "" } },
      { id: "call_3", type: "function", function: { name: "", arguments: "not a call" } },
    ],
  });
});

test.each([
  ["file:///etc/passwd", undefined],
  ["ftp://127.0.0.1/v1", undefined],
  ["not a url", undefined],
  ["http://user:secret@127.0.0.1/v1", undefined],
  ["http://127.0.0.1/v1", "sk-1\r\nX-Evil: 1"],
])("the address %p with the key %p is refused before anything is sent", async (url, apiKey) => {
  using client = setup(url, apiKey === undefined ? {} : { apiKey });
  const { code, message } = await failureOf(client.chat());
  expect(code).toBe("invalid_field");
  expect(message).not.toContain("secret");
  expect(message).not.toContain("sk-1");
});

test("a conversation that does not fit the context has a code of its own", async () => {
  await using simulator = await startSimulator({ policy: ECHO, maxModelLen: 100 });
  using client = setup(simulator.url);
  const tooLong = [{ role: "user" as const, content: "x".repeat(1_000) }];
  const failure = await failureOf(client.chat({ messages: tooLong }));
  expect(failure).toMatchObject({
    code: "context_exhausted",
    boundary: "policy",
    retryable: false,
  });
});

test("a prompt that fits is answered with what the context leaves, whatever max_tokens says", async () => {
  await using simulator = await startSimulator({ policy: ECHO, maxModelLen: 100 });
  using client = setup(simulator.url);
  const messages = [{ role: "user" as const, content: "x".repeat(30) }];
  const reply = await client.chat({ messages, sampling: { max_tokens: 99 } });
  expect(reply.message.content).toBe("x".repeat(30));
});

test("six hundred calls of one worker thread are in flight at once", async () => {
  await using simulator = await startSimulator({ policy: ECHO, faults: [parseFault("stall")] });
  const source = `
    import { openAiChat } from ${JSON.stringify(import.meta.resolve("../../src/inference/openai-chat.ts"))};
    const client = openAiChat();
    self.onmessage = ({ data: url }) => {
      const request = { messages: [{ role: "user", content: "hi" }], tools: [], sampling: {},
        timeoutMs: 60000, maxReplyBytes: 1000, sessionId: "s", requestId: "r" };
      const { signal } = new AbortController();
      const backend = { id: "b1", url, model: "simulated" };
      for (let i = 0; i < 600; i++) client.chat(backend, request, signal).catch(() => {});
    };`;
  const module = URL.createObjectURL(new Blob([source], { type: "application/typescript" }));
  const worker = new Worker(module);
  worker.postMessage(simulator.url);
  await waitFor(() => simulator.requests.inFlight === 600, "600 calls in flight");
  await worker.terminate();
});

test.each([
  ["status=503,limit=2", "hello"],
  ["status=429,limit=1,retry_after=0", "hello"],
  ["reset,limit=1", "hello"],
  ["status=503", "engine_overloaded"],
  ["status=429", "engine_overloaded"],
  ["status=502", "engine_unreachable"],
  ["status=504", "engine_unreachable"],
  ["status=500", "engine_bad_reply"],
  ["status=418", "engine_refused"],
  ["reset", "engine_unreachable"],
  ["garbage", "engine_bad_reply"],
  ["truncate", "engine_unreachable"],
])("the fault %p ends as %p", async (fault, outcome) => {
  await using simulator = await startSimulator({ policy: ECHO, faults: [parseFault(fault)] });
  using client = setup(simulator.url);
  const ended = client.chat().then(
    ({ message }) => message.content,
    (error) => error.code,
  );
  expect(await ended).toBe(outcome);
});
