import { expect, test } from "bun:test";
import type { EngineChoice, EngineProfile } from "../../src/inference/engine-profile.ts";
import { probeBackend } from "../../src/inference/probe.ts";
import { parseFault } from "../../src/simulator/faults.ts";
import { LOGPROBS_MODES, type LogprobsMode } from "../../src/simulator/logprobs.ts";
import { parsePolicy } from "../../src/simulator/policy.ts";
import { type SimulatorOptions, startSimulator } from "../../src/simulator/simulator.ts";
import type { SimulatedWire } from "../../src/simulator/wires/format.ts";
import { failureOf } from "./chat-setup.ts";
import { httpReply, rawEngine } from "./raw-engine.ts";

async function setup(wire: SimulatedWire, options: Partial<SimulatorOptions> = {}) {
  const line = JSON.stringify({ match: "never", variants: [[{ content: "x" }]] });
  const policy = parsePolicy(line, "p");
  const simulator = await startSimulator({ policy, wire, model: "qwen", ...options });
  const probe = (engine: EngineChoice = "auto", model?: string) => {
    const signal = new AbortController().signal;
    const named = model === undefined ? {} : { model };
    return probeBackend(simulator.url, { engine, ...named, timeoutMs: 5_000, signal });
  };
  return { simulator, probe, [Symbol.asyncDispose]: () => simulator.stop() };
}

const TOKENS = {
  max_model_len: 131_072,
  logprobs: true,
  stop_id_included: true,
  tokenize: true,
  tokenizer_hash: expect.any(String),
  tokenizes_chat: true,
  streams: true,
  logprobs_mode: "raw" as LogprobsMode,
};
const TEXT = {
  rung: "chat",
  max_model_len: 131_072,
  logprobs: false,
  stop_id_included: null,
  tokenize: false,
  salt: null,
  streams: false,
  load: [] as EngineProfile["load"],
  control: false,
  version: null,
  weight_version: null,
} as const;

test("an engine of vLLM's is called by its generate route", async () => {
  await using engine = await setup("vllm");
  expect(await engine.probe()).toEqual({
    model: "qwen",
    profile: {
      kind: "vllm",
      version: "0.31.0",
      rung: "inference_generate",
      ...TOKENS,
      salt: true,
      load: ["metrics"],
      control: true,
      weight_version: "0",
      passed_over: [],
    },
  });
});

test("an old vLLM is called by completions with ids as text, and it is said why", async () => {
  await using engine = await setup("vllm-old");
  const { profile } = await engine.probe();
  expect(profile).toEqual({
    kind: "vllm",
    version: "0.31.0",
    rung: "completions_text_ids",
    ...TOKENS,
    salt: null,
    load: ["metrics"],
    control: false,
    weight_version: null,
    passed_over: [
      { rung: "inference_generate", why: expect.stringContaining("answered 404") },
      { rung: "completions", why: expect.stringContaining("token_ids: is missing") },
    ],
  });
});

test("an engine of SGLang's is called by its own generate, and tells its load in each reply", async () => {
  await using engine = await setup("sglang");
  expect((await engine.probe()).profile).toEqual({
    kind: "sglang",
    version: "0.31.0",
    rung: "sglang_generate",
    ...TOKENS,
    logprobs_mode: "temperature",
    salt: true,
    load: ["in_band"],
    control: true,
    weight_version: "0",
    passed_over: [],
  });
});

test("an engine of SGLang's whose streams repeat themselves is not streamed from", async () => {
  await using engine = await setup("sglang-old", { weightsMs: 4 });
  const { profile } = await engine.probe();
  expect([profile.rung, profile.streams]).toEqual(["sglang_generate", false]);
});

test("an engine of ProRL's is known by its reply, as it says nothing of itself", async () => {
  await using engine = await setup("prorl");
  expect(await engine.probe()).toEqual({
    model: "policy",
    profile: {
      ...TEXT,
      kind: "prorl",
      rung: "prorl_generate",
      tokenizer_hash: null,
      tokenizes_chat: false,
      max_model_len: null,
      logprobs: true,
      logprobs_mode: "raw",
      stop_id_included: true,
      passed_over: [],
    },
  });
  expect((await engine.probe("auto", "qwen")).model).toBe("qwen");
});

test.each(LOGPROBS_MODES)(
  "of which distribution log-probabilities are is seen: %s",
  async (mode) => {
    for (const wire of ["vllm", "vllm-old", "sglang", "prorl"] as const) {
      await using engine = await setup(wire, { logprobsMode: mode });
      expect((await engine.probe()).profile.logprobs_mode).toBe(mode);
    }
  },
);

test("an engine that only chats is used for text, and nothing but its models is needed", async () => {
  await using engine = await setup("openai");
  const { profile } = await engine.probe();
  const passed = profile.passed_over.map(({ rung }) => rung);
  expect(passed).toEqual([
    "inference_generate",
    "completions",
    "completions_text_ids",
    "prorl_generate",
    "sglang_generate",
    "chat_ids",
  ]);
  expect({ ...profile, passed_over: [] }).toEqual({ ...TEXT, kind: "openai", passed_over: [] });
});

test.each([
  ["vllm", "vllm", "vllm", "inference_generate"],
  ["all", "sglang", "sglang", "sglang_generate"],
  ["all", "prorl", "prorl", "prorl_generate"],
  ["prorl", "prorl", "prorl", "prorl_generate"],
] as const)("of --wire %s, --engine %s is believed", async (wire, engine, kind, rung) => {
  await using t = await setup(wire);
  expect((await t.probe(engine)).profile).toMatchObject({ kind, rung });
});

test("--engine openai asks a chat for ids, and --engine text for nothing", async () => {
  await using t = await setup("vllm", { policy: { kind: "echo" } });
  const { profile } = await t.probe("openai");
  expect(profile).toMatchObject({ kind: "openai", rung: "chat_ids", logprobs: true });
  const before = t.simulator.requests.total;
  expect((await t.probe("text")).profile).toEqual({ ...TEXT, kind: "openai", passed_over: [] });
  expect(t.simulator.requests.total).toBe(before);
});

test("an engine that is not of the kind that was named is refused", async () => {
  await using t = await setup("sglang");
  const failure = await failureOf(t.probe("vllm"));
  expect(failure).toMatchObject({ code: "invalid_field", field: "engine" });
  expect(failure.message).toStartWith("it does not generate as vllm does: ");
});

test.each([
  ["status=503", "engine_overloaded"],
  ["reset", "engine_unreachable"],
  ["truncate", "engine_unreachable"],
  ["nan", "token_invariant"],
  ["lengths", "token_invariant"],
  ["bad_ids", "token_invariant"],
])("an engine with the fault %p is not taken for a worse one: %p", async (fault, code) => {
  await using t = await setup("vllm", { faults: [parseFault(fault)] });
  expect((await failureOf(t.probe())).code).toBe(code as "token_invariant");
});

test("a busy moment is waited for", async () => {
  await using t = await setup("vllm", { faults: [parseFault("status=503,limit=2")] });
  expect((await t.probe()).profile.rung).toBe("inference_generate");
});

test("a stop id that the engine keeps to itself is noticed, and a salt that does nothing", async () => {
  await using engine = await rawEngine((socket, request) => {
    const body = JSON.parse(request.slice(request.indexOf("\r\n\r\n")).trim() || "null");
    const answer = (value: object) => socket.write(httpReply(JSON.stringify(value)));
    if (request.startsWith("GET /v1/models")) return answer({ data: [{ id: "m" }] });
    if (!request.startsWith("POST /inference")) return socket.write(httpReply("{}", 404));
    const stops = body.sampling_params.stop_token_ids.includes(7);
    const usage = { prompt_tokens_details: { cached_tokens: body.token_ids.length - 1 } };
    const token_ids = stops ? [] : [7].slice(0, body.sampling_params.max_tokens);
    const content = token_ids.map((token_id) => ({ token_id, logprob: -1 }));
    const finish_reason = stops ? "stop" : "length";
    return answer({ usage, choices: [{ token_ids, logprobs: { content }, finish_reason }] });
  });
  const signal = new AbortController().signal;
  const { profile } = await probeBackend(engine.url, { timeoutMs: 5_000, signal });
  expect(profile).toMatchObject({
    kind: "vllm",
    stop_id_included: false,
    salt: false,
    version: null,
  });
});
