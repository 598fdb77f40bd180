import { expect, test } from "bun:test";
import type { ChatReply } from "../../src/inference/engine.ts";
import { parseFault } from "../../src/simulator/faults.ts";
import { parsePolicy } from "../../src/simulator/policy.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { waitFor } from "../support/wait-for.ts";
import { failureOf, setup } from "./chat-setup.ts";
import { HELLO, httpReply, rawEngine } from "./raw-engine.ts";

const STREAMED = { stallMs: 5_000 };
const TWO_CALLS = JSON.stringify({
  match: "",
  variants: [
    [
      {
        content: "I look, naïvely: 日本語",
        tool_calls: [
          { name: "bash", arguments: { command: "ls -la" } },
          { name: "bash", arguments: { command: 'echo "twice"' } },
        ],
      },
    ],
  ],
});

const untimed = ({ durationMs: _, firstTokenMs: __, ...reply }: ChatReply) => reply;

test.each([false, true])(
  "a streamed chat is what the whole one is; with ids: %p",
  async (givesIds) => {
    const policy = parsePolicy(TWO_CALLS, "p");
    await using simulator = await startSimulator({ policy, wire: "vllm", weightsMs: 1 });
    using client = setup(simulator.url, { givesIds });
    await client.chat();
    const whole = await client.chat();
    const streamed = await client.chat(STREAMED);
    expect(untimed(streamed)).toEqual(untimed(whole));
    expect([streamed.message.tool_calls?.length, streamed.finishReason]).toEqual([2, "tool_calls"]);
    expect(streamed.tokens?.tokenIds.length).toBe(
      givesIds ? (streamed.completionTokens ?? -1) : undefined,
    );
    expect([whole.firstTokenMs, streamed.firstTokenMs]).toEqual([null, expect.any(Number)]);
    expect(streamed.firstTokenMs as number).toBeLessThan(streamed.durationMs);
  },
);

test("a chat that is aborted within its stream frees the engine at once", async () => {
  await using simulator = await startSimulator({ policy: { kind: "echo" }, weightsMs: 50 });
  using client = setup(simulator.url);
  const controller = new AbortController();
  const reason = new Error("cancelled");
  const call = client.chat(STREAMED, controller.signal).catch((error) => error);
  await waitFor(() => simulator.requests.inFlight === 1, "the call");
  controller.abort(reason);
  expect(await call).toBe(reason);
  await waitFor(() => simulator.requests.inFlight === 0, "the engine to notice");
});

test("a server that refuses streams is asked without, and from then on at once", async () => {
  await using engine = await rawEngine((socket, request) => {
    const refused = JSON.stringify({ error: { message: "stream: unknown field", code: 400 } });
    const streams = request.includes('"stream":true');
    socket.write(streams ? httpReply(refused, 400) : httpReply(HELLO));
  });
  using client = setup(engine.url);
  const replies = [await client.chat(STREAMED), await client.chat(STREAMED)];
  expect(replies.map(({ message, firstTokenMs }) => [message.content, firstTokenMs])).toEqual([
    ["hello", null],
    ["hello", null],
  ]);
  const streams = engine.requests.map((request) => request.includes('"stream":true'));
  expect(streams).toEqual([true, false, false]);
});

test("what a server refuses that has sent streams is refused, and asked once", async () => {
  await using simulator = await startSimulator({ policy: { kind: "echo" } });
  using client = setup(simulator.url);
  await client.chat(STREAMED);
  const before = simulator.requests.total;
  const failure = await failureOf(client.chat({ ...STREAMED, messages: [] }));
  expect([failure.code, simulator.requests.total - before]).toEqual(["engine_refused", 1]);
});

test("a busy engine is asked again for the stream", async () => {
  const faults = [parseFault("status=503,limit=1")];
  await using simulator = await startSimulator({ policy: { kind: "echo" }, faults });
  using client = setup(simulator.url);
  expect((await client.chat(STREAMED)).firstTokenMs).toEqual(expect.any(Number));
});

const HEAD =
  "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
const event = (data: string) => {
  const text = `data: ${data}\n\n`;
  return `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
};
const delta = (fields: object, finish_reason: string | null = null) =>
  event(JSON.stringify({ choices: [{ index: 0, delta: fields, finish_reason }] }));
const DONE = event("[DONE]");
const CLOSE = "0\r\n\r\n";

/** What comes of a stream that is written as it stands here. */
async function streaming(text: string, stallMs = 5_000) {
  await using engine = await rawEngine((socket) => socket.write(HEAD + text));
  using client = setup(engine.url);
  return await client.chat({ stallMs }).then(
    ({ message, finishReason }) => ({ message, finishReason }),
    ({ code }) => ({ code }),
  );
}

const ROLE = delta({ role: "assistant", content: "" });
const said = (content: string) => ({ role: "assistant" as const, content });
const call = (id: string, name: string, args: string) => {
  return { id, type: "function" as const, function: { name, arguments: args } };
};

test.each([
  ["text", ROLE + delta({ content: "a" }) + delta({ content: "b" }, "stop"), said("ab"), "stop"],
  [
    "reasoning under either name",
    delta({ reasoning_content: "1" }) +
      delta({ reasoning_content: "2" }) +
      delta({ content: "x" }, "stop"),
    { ...said("x"), reasoning_content: "12" },
    "stop",
  ],
  [
    "vLLM's reasoning",
    delta({ reasoning: "th" }) + delta({ reasoning: "ink" }, "stop"),
    { ...said(""), reasoning_content: "think" },
    "stop",
  ],
  [
    "calls in turn",
    delta({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "" } }] }) +
      delta({ tool_calls: [{ index: 0, function: { arguments: '{"x":' } }] }) +
      delta({ tool_calls: [{ index: 1, id: "b", function: { name: "g", arguments: "{}" } }] }) +
      delta({ tool_calls: [{ index: 0, function: { arguments: "1}" } }] }, "tool_calls"),
    { ...said(""), tool_calls: [call("a", "f", '{"x":1}'), call("b", "g", "{}")] },
    "tool_calls",
  ],
  [
    "calls without an index",
    delta({ tool_calls: [{ id: "a", function: { name: "f", arguments: "{" } }] }) +
      delta({ tool_calls: [{ function: { arguments: "}" } }] }) +
      delta({ tool_calls: [{ id: "b", function: { name: "f", arguments: "{}" } }] }, "tool_calls"),
    { ...said(""), tool_calls: [call("a", "f", "{}"), call("b", "f", "{}")] },
    "tool_calls",
  ],
  ["no reason for its end", ROLE + delta({ content: "a" }), said("a"), "abort"],
])("a stream of %s is put together", async (_what, text, message, finishReason) => {
  const ended: object = await streaming(text + DONE + CLOSE);
  expect(ended).toEqual({ message, finishReason });
});

test("a server that never says [DONE] has ended when it has said why it ends, and not before", async () => {
  const part = ROLE + delta({ content: "a" });
  const whole = part + delta({}, "stop");
  expect(await streaming(whole + CLOSE)).toEqual({ message: said("a"), finishReason: "stop" });
  expect(await streaming(part + CLOSE)).toEqual({ code: "engine_unreachable" });
});

test.each([
  ["silence", ROLE + delta({ content: "a" }), "engine_timeout"],
  [
    "an error",
    `${ROLE}${event('{"error":{"message":"CUDA","code":500}}')}${DONE}${CLOSE}`,
    "engine_bad_reply",
  ],
  ["garbage", `${ROLE}${event("<html>")}${CLOSE}`, "engine_bad_reply"],
  ["another shape", `${event('{"choices":5}')}${DONE}${CLOSE}`, "engine_bad_reply"],
  ["nothing", DONE + CLOSE, "engine_bad_reply"],
])("a stream with %s is a typed failure", async (_what, text, code) => {
  expect(await streaming(text, 100)).toEqual({ code });
});
