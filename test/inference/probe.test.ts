import { expect, test } from "bun:test";
import { probeBackend } from "../../src/inference/probe.ts";
import { parsePolicy } from "../../src/simulator/policy.ts";
import { startSimulator } from "../../src/simulator/simulator.ts";
import { failureOf } from "./chat-setup.ts";
import { httpReply, rawEngine } from "./raw-engine.ts";

const options = () => ({ timeoutMs: 5_000, signal: new AbortController().signal });

const serving = (...ids: string[]) =>
  rawEngine((socket) => {
    socket.write(httpReply(JSON.stringify({ data: ids.map((id) => ({ id })) })));
  });

test("the only model of a server is chosen, with its context length", async () => {
  await using simulator = await startSimulator({
    policy: { kind: "echo" },
    model: "qwen",
    maxModelLen: 4096,
  });
  const { model, profile } = await probeBackend(simulator.url, options());
  expect([model, profile.max_model_len]).toEqual(["qwen", 4096]);
});

test("a model is named where there are several, and the error lists them", async () => {
  await using engine = await serving("a", "b");
  const failure = await failureOf(probeBackend(engine.url, options()));
  expect(failure).toMatchObject({ code: "invalid_field", field: "model" });
  expect(failure.message).toEndWith("no model is named; it serves a, b");
  const named = { ...options(), model: "b", apiKey: "sk-1" };
  const { model, profile } = await probeBackend(engine.url, named);
  expect([model, profile.max_model_len, profile.rung]).toEqual(["b", null, "chat"]);
  expect(engine.requests.at(-1)).toContain("Authorization: Bearer sk-1\r\n");
});

test("a model that is not served is refused", async () => {
  await using engine = await serving("a");
  const failure = await failureOf(probeBackend(engine.url, { ...options(), model: "z" }));
  expect(failure.message).toEndWith('there is no model "z"; it serves a');
});

test("a server without models is refused", async () => {
  await using engine = await serving();
  const failure = await failureOf(probeBackend(engine.url, options()));
  expect(failure.message).toEndWith("no model is named; it serves no model");
});

test("a server of another kind is a bad reply", async () => {
  await using engine = await rawEngine((socket) => socket.write(httpReply('{"hello":1}')));
  const failure = await failureOf(probeBackend(engine.url, options()));
  expect(failure.code).toBe("engine_bad_reply");
});

test("a probe leaves no connection behind, and can be aborted", async () => {
  await using engine = await rawEngine(() => {});
  const reason = new Error("stop");
  const controller = new AbortController();
  const probe = probeBackend(engine.url, { timeoutMs: 5_000, signal: controller.signal });
  controller.abort(reason);
  expect(await probe.catch((error) => error)).toBe(reason);
});

test("a scripted engine that tells ids with its chats is found to, whatever its script", async () => {
  const script = JSON.stringify({ match: "six", variants: [[{ content: "42" }]] });
  const policy = parsePolicy(script, "p");
  await using simulator = await startSimulator({ policy, wire: "vllm" });
  const signal = new AbortController().signal;
  const options = { engine: "openai", timeoutMs: 5_000, signal } as const;
  const { profile } = await probeBackend(simulator.url, options);
  expect([profile.rung, profile.logprobs]).toEqual(["chat_ids", true]);
});
