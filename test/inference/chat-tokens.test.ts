import { expect, test } from "bun:test";
import { openAiChat } from "../../src/inference/openai-chat.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { byteTokenizer } from "../../src/simulator/tokenizer.ts";
import { failureOf } from "./chat-setup.ts";
import { chatIds, END, profileOf, replying } from "./token-setup.ts";

function setup(url: string, rung: "chat" | "chat_ids") {
  const client = openAiChat({ maxRetries: 0, backoffMs: 1, maxBackoffMs: 1 });
  const backend = { id: "b1", url, model: "simulated", profile: profileOf(rung) };
  const request = {
    messages: [{ role: "user" as const, content: "hello" }],
    tools: [],
    sampling: {},
    timeoutMs: 20_000,
    maxReplyBytes: 1_000_000,
    sessionId: "job-1",
    requestId: "job-1.0",
    cacheSalt: "w42",
  };
  const chat = () => client.chat(backend, request, new AbortController().signal);
  return { chat, [Symbol.dispose]: () => client[Symbol.dispose]() };
}

test("a chat that gives ids says what the engine saw and sampled", async () => {
  await using simulator = await startSimulator({ policy: { kind: "echo" } });
  using client = setup(simulator.url, "chat_ids");
  const { message, tokens } = await client.chat();
  expect(message.content).toBe("hello");
  expect(tokens).toEqual({
    promptIds: chatIds("hello"),
    tokenIds: [...byteTokenizer.encode("hello"), END],
    logprobs: expect.any(Array),
    finishReason: "stop",
    stopTokenId: null,
    weightSpans: [],
    weightVersion: null,
    cachedTokens: 0,
  });
});

test("a text chat asks for no ids and says nothing of them", async () => {
  const message = { role: "assistant", content: "hello" };
  await using engine = await replying({ choices: [{ message, finish_reason: "stop" }] });
  using client = setup(engine.url, "chat");
  expect((await client.chat()).tokens).toBeUndefined();
  expect(Object.keys(engine.asked())).toEqual(["model", "messages", "cache_salt", "stream"]);
});

test.each([
  ["without ids", {}, "engine_bad_reply"],
  ["with too few log-probabilities", { token_ids: [1, 2] }, "token_invariant"],
  ["with as many as ids", { token_ids: [1] }, undefined],
])("a chat that should give ids and comes %s ends as %p", async (_what, fields, code) => {
  const choice = {
    message: { role: "assistant", content: "hello" },
    finish_reason: "tool_calls",
    logprobs: { content: [{ token: "h", logprob: -1 }] },
    ...fields,
  };
  await using engine = await replying({ prompt_token_ids: [1], choices: [choice] });
  using client = setup(engine.url, "chat_ids");
  if (code === undefined) expect((await client.chat()).tokens?.finishReason).toBe("stop");
  else expect((await failureOf(client.chat())).code).toBe(code as "token_invariant");
});

test("SGLang's ids are read where it writes them", async () => {
  const choice = {
    ...{ message: { role: "assistant", content: "hello" }, finish_reason: "stop", matched_stop: 9 },
    logprobs: { content: [{ token: "h", logprob: -1 }] },
    ...{ prompt_token_ids: [1, 2], response_token_ids: [9] },
  };
  await using engine = await replying({ choices: [choice] });
  using client = setup(engine.url, "chat_ids");
  const { tokens } = await client.chat();
  expect(tokens).toMatchObject({ promptIds: [1, 2], tokenIds: [9], stopTokenId: 9 });
});
