import { expect, test } from "bun:test";
import { parseFault } from "../../src/simulator/faults.ts";
import { parsePolicy } from "../../src/simulator/policy.ts";
import { type SimulatorOptions, startSimulator } from "../../src/simulator/simulator.ts";
import { waitFor } from "../support/wait-for.ts";

async function setup(options: Partial<SimulatorOptions> = {}) {
  const simulator = await startSimulator({ policy: { kind: "echo" }, ...options });
  const post = (body: object, init: RequestInit = {}) =>
    fetch(`${simulator.url}/chat/completions`, {
      method: "POST",
      body: JSON.stringify({ model: "simulated", messages: HELLO, ...body }),
      ...init,
    });
  return { simulator, post, [Symbol.asyncDispose]: () => simulator.stop() };
}

const HELLO = [{ role: "user", content: "hello you" }];

const CALLING = JSON.stringify({
  match: "",
  variants: [[{ content: "I look", tool_calls: [{ name: "bash", arguments: { command: "ls" } }] }]],
});

test("health and models answer as vLLM's do", async () => {
  await using engine = await setup({ model: "qwen", maxModelLen: 4096 });
  const { origin } = new URL(engine.simulator.url);
  expect((await fetch(`${origin}/health`)).status).toBe(200);
  const models = await (await fetch(`${engine.simulator.url}/models`)).json();
  expect(models).toMatchObject({
    object: "list",
    data: [{ id: "qwen", object: "model", max_model_len: 4096 }],
  });
  expect((await fetch(`${origin}/v2/nothing`)).status).toBe(404);
});

test("a completion has the wire format of a real one", async () => {
  await using engine = await setup({ policy: parsePolicy(CALLING, "p") });
  const reply = await engine.post({}, { headers: { "X-Request-Id": "r1" } });
  expect(await reply.json()).toEqual({
    id: "chatcmpl-r1",
    object: "chat.completion",
    created: expect.any(Number),
    model: "simulated",
    choices: [
      {
        index: 0,
        message: {
          role: "assistant",
          content: "I look",
          refusal: null,
          tool_calls: [
            {
              id: "call_0_0",
              type: "function",
              function: { name: "bash", arguments: '{"command":"ls"}' },
            },
          ],
        },
        logprobs: null,
        finish_reason: "tool_calls",
      },
    ],
    usage: {
      prompt_tokens: 28,
      completion_tokens: 59,
      total_tokens: 87,
      prompt_tokens_details: { cached_tokens: 0 },
    },
  });
});

test("a stream carries the same answer in pieces", async () => {
  await using engine = await setup({ policy: parsePolicy(CALLING, "p") });
  const reply = await engine.post({ stream: true, stream_options: { include_usage: true } });
  expect(reply.headers.get("content-type")).toStartWith("text/event-stream");
  const events = (await reply.text()).trim().split("\n\n");
  expect(events.pop()).toBe("data: [DONE]");
  const chunks = events.map((event) => JSON.parse(event.slice("data: ".length)));
  const deltas = chunks.flatMap(({ choices }) => choices.map((c: { delta: object }) => c.delta));
  expect(deltas.map(({ content }) => content ?? "").join("")).toBe("I look");
  const [head, ...parts] = deltas.flatMap(({ tool_calls }) => tool_calls ?? []);
  expect(head).toMatchObject({ index: 0, id: "call_0_0", function: { name: "bash" } });
  const written = parts.map((part) => part.function.arguments);
  expect([written.length > 1, written.join("")]).toEqual([true, '{"command":"ls"}']);
  expect(chunks.at(-2).choices[0].finish_reason).toBe("tool_calls");
  expect(chunks.at(-1).usage.total_tokens).toBe(87);
});

test("text parts are read as one text", async () => {
  await using engine = await setup();
  const parts = ["a", "b"].map((text) => ({ type: "text", text }));
  const reply = await engine.post({ messages: [{ role: "user", content: parts }] });
  expect(await reply.json()).toMatchObject({ choices: [{ message: { content: "ab" } }] });
});

test("max_tokens cuts the answer and its tool calls, and says so", async () => {
  await using engine = await setup({ policy: parsePolicy(CALLING, "p") });
  expect(await (await engine.post({ max_tokens: 4 })).json()).toMatchObject({
    choices: [{ message: { content: "I lo", tool_calls: [] }, finish_reason: "length" }],
    usage: { completion_tokens: 4 },
  });
});

test.each([
  [{ model: "other" }, 404, "The model `other` does not exist."],
  [{ messages: [] }, 400, "messages: "],
  [{ messages: [{ role: "user", content: 7 }] }, 400, "messages.0.content: "],
  [{ max_tokens: 140_000 }, 400, "This model's maximum context length is 131072 tokens."],
  [{ n: 2 }, 400, "n: "],
])("the request %j is refused with %i in the engine's error shape", async (body, status, text) => {
  await using engine = await setup();
  const reply = await engine.post(body);
  expect(reply.status).toBe(status);
  const message = expect.stringContaining(text);
  expect(await reply.json()).toMatchObject({
    error: { code: status, type: expect.any(String), message },
  });
});

test("a policy without an answer is a 400 that says why", async () => {
  const line = JSON.stringify({ match: "two", variants: [[{ content: "2" }]] });
  await using engine = await setup({ policy: parsePolicy(line, "p") });
  const reply = await engine.post({});
  expect(reply.status).toBe(400);
  const message = 'no scripted policy matches the first user message "hello you"; there are: "two"';
  expect(await reply.json()).toMatchObject({ error: { message } });
});

test("a call lasts as long as latency and tokens say", async () => {
  await using engine = await setup({ latencyMs: 30, weightsMs: 5 });
  const startMs = performance.now();
  await engine.post({ messages: [{ role: "user", content: "x".repeat(9) }] });
  expect(performance.now() - startMs).toBeGreaterThanOrEqual(79);
});

test("requests are counted while they run, when they end and when they are aborted", async () => {
  await using engine = await setup({ faults: [parseFault("stall,turn=0")] });
  const { requests } = engine.simulator;
  const controller = new AbortController();
  const stalled = engine.post({}, { signal: controller.signal }).catch(() => "aborted");
  await waitFor(() => requests.inFlight === 1, "the request");
  controller.abort();
  expect(await stalled).toBe("aborted");
  await waitFor(() => requests.inFlight === 0, "the abort to be noticed");
  const assistant = { role: "assistant", content: "" };
  await engine.post({ messages: [...HELLO, assistant] });
  expect(requests).toEqual({ total: 2, inFlight: 0, aborted: 1, faults: 1 });
});

test("a stop ends the calls that still run", async () => {
  await using engine = await setup({ faults: [parseFault("stall")] });
  const stalled = engine.post({}).catch(() => "ended");
  await waitFor(() => engine.simulator.requests.inFlight === 1, "the request");
  await engine.simulator.stop();
  expect(await stalled).toBe("ended");
  await waitFor(() => engine.simulator.requests.inFlight === 0, "the call to be forgotten");
});

test("a status fault carries the wait that it asks for", async () => {
  await using engine = await setup({ faults: [parseFault("status=429,retry_after=3")] });
  const reply = await engine.post({});
  expect([reply.status, reply.headers.get("retry-after")]).toEqual([429, "3"]);
});
