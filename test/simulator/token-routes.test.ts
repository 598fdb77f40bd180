import { expect, test } from "bun:test";
import { type SimulatorOptions, startSimulator } from "../../src/simulator/simulator.ts";
import { byteTokenizer } from "../../src/simulator/tokenizer.ts";
import { waitFor } from "../support/wait-for.ts";

const PROMPT = byteTokenizer.encode("<|im_start|>user\nhello<|im_end|>\n<|im_start|>assistant\n");
const HELLO = [...byteTokenizer.encode("hello"), byteTokenizer.specialId("<|im_end|>")];

async function setup(options: Partial<SimulatorOptions> = {}) {
  const simulator = await startSimulator({ policy: { kind: "echo" }, ...options });
  const { origin } = new URL(simulator.url);
  const send = async (method: string, path: string, body?: object) => {
    const init = body === undefined ? { method } : { method, body: JSON.stringify(body) };
    const response = await fetch(`${origin}${path}`, init);
    const text = await response.text();
    // biome-ignore lint/suspicious/noExplicitAny: what the assertions look at is what is tested.
    const reply: any = text.startsWith("{") ? JSON.parse(text) : text;
    return { status: response.status, reply };
  };
  const post = (path: string, body: object) => send("POST", path, body);
  const get = (path: string) => send("GET", path);
  return { simulator, post, get, [Symbol.asyncDispose]: () => simulator.stop() };
}

const generating = (fields: object = {}, sampling: object = {}) => ({
  token_ids: PROMPT,
  sampling_params: { max_tokens: 100, logprobs: 0, ...sampling },
  ...fields,
});

test("vLLM's generate answers with the documented fields", async () => {
  await using engine = await setup();
  const { reply } = await engine.post("/inference/v1/generate", generating({ request_id: "r7" }));
  expect(reply).toEqual({
    request_id: "generate-tokens-r7",
    output_mode: "tokens",
    usage: {
      prompt_tokens: PROMPT.length,
      completion_tokens: 6,
      total_tokens: PROMPT.length + 6,
      prompt_tokens_details: { cached_tokens: 0 },
    },
    choices: [
      {
        index: 0,
        finish_reason: "stop",
        stop_reason: null,
        token_ids: HELLO,
        logprobs: {
          content: HELLO.map((token_id) => ({
            token_id,
            logprob: expect.any(Number),
            rank: 1,
            top_logprobs: [],
          })),
        },
        weight_versions: [{ version: "0", start: 0, end: 6 }],
      },
    ],
  });
});

test("what is not asked for is as an engine's defaults have it", async () => {
  await using engine = await setup();
  const long = byteTokenizer.encode(
    `<|im_start|>user\n${"x".repeat(200)}<|im_end|>\n<|im_start|>assistant`,
  );
  const short = await engine.post("/v1/completions", { model: "simulated", prompt: long });
  expect(short.reply.choices[0]).toMatchObject({ finish_reason: "length", text: "x".repeat(16) });
  expect(short.reply.choices[0].token_ids).toBeUndefined();
  const sglang = await engine.post("/generate", { input_ids: long });
  expect(sglang.reply.meta_info).toMatchObject({
    completion_tokens: 128,
    finish_reason: { type: "length" },
  });
  expect(sglang.reply.meta_info.output_token_logprobs).toBeUndefined();
});

test("log-probabilities depend on seed, position and id alone", async () => {
  await using engine = await setup();
  await using other = await setup({ seed: 1 });
  const logprobs = async (of: typeof engine) =>
    (await of.post("/generate", { prompt_ids: PROMPT })).reply.logprobs;
  const first = await logprobs(engine);
  expect(first).toEqual(await logprobs(engine));
  expect(first).not.toEqual(await logprobs(other));
  expect(first.every((value: number) => value <= 0 && value > -10)).toBe(true);
});

test("a stop id or a stop string ends a turn early, and is part of it", async () => {
  await using engine = await setup();
  const [, , l = 0] = HELLO;
  const byId = await engine.post("/inference/v1/generate", generating({}, { stop_token_ids: [l] }));
  expect(byId.reply.choices[0]).toMatchObject({
    finish_reason: "stop",
    stop_reason: l,
    token_ids: HELLO.slice(0, 3),
  });
  const byText = await engine.post("/inference/v1/generate", generating({}, { stop: ["ll"] }));
  expect(byText.reply.choices[0].token_ids).toEqual(HELLO.slice(0, 4));
  const blind = generating({}, { stop: ["ll"], detokenize: false });
  expect((await engine.post("/inference/v1/generate", blind)).status).toBe(400);
});

test("an unknown parameter breaks ProRL's engine, and no other", async () => {
  await using engine = await setup();
  const { status, reply } = await engine.post("/generate", { prompt_ids: PROMPT, model: "m" });
  expect(status).toBe(400);
  expect(reply.error.message).toContain("model");
  const other = generating({ anything: 1 });
  expect((await engine.post("/inference/v1/generate", other)).status).toBe(200);
});

test("new weights are seen in the turn that they came into, and asked for by name", async () => {
  await using engine = await setup({ weightsMs: 50 });
  const turn = engine.post("/inference/v1/generate", generating());
  await waitFor(
    async () => (await engine.get("/metrics")).reply.includes('running{model_name="simulated"} 1'),
    "the turn",
  );
  await engine.post("/update_weight_version", { new_version: "1" });
  const { weight_versions } = (await turn).reply.choices[0];
  expect(weight_versions.at(-1)).toMatchObject({ version: "1", end: 6 });
  expect((await engine.get("/get_weight_version")).reply).toEqual({ weight_version: "1" });
});

test("the prefix cache is counted, kept apart by salt, and flushed", async () => {
  await using engine = await setup();
  const prompt = Array.from({ length: 100 }, (_, index) => index);
  const cached = async (cache_salt: string) => {
    const body = generating({ token_ids: prompt, cache_salt });
    const { reply } = await engine.post("/inference/v1/generate", body);
    return reply.usage.prompt_tokens_details.cached_tokens;
  };
  expect([await cached("a"), await cached("a"), await cached("b")]).toEqual([0, 96, 0]);
  await engine.post("/reset_prefix_cache", {});
  expect(await cached("a")).toBe(0);
  const { reply } = await engine.get("/metrics");
  expect(reply).toContain('vllm:prefix_cache_queries_total{model_name="simulated"} 400\n');
  expect(reply).toContain('vllm:prefix_cache_hits_total{model_name="simulated"} 96\n');
  expect(reply).toContain('vllm:num_requests_running{model_name="simulated"} 0\n');
});

test("text becomes ids and ids text", async () => {
  await using engine = await setup();
  const { reply } = await engine.post("/tokenize", { prompt: "hi<|im_end|>" });
  expect(reply).toEqual({ count: 3, max_model_len: 131_072, tokens: [104, 105, 258] });
  const back = await engine.post("/detokenize", { tokens: reply.tokens });
  expect(back.reply.prompt).toBe("hi<|im_end|>");
});

test("an id that the vocabulary lacks is refused", async () => {
  await using engine = await setup();
  const { status } = await engine.post("/inference/v1/generate", generating({ token_ids: [999] }));
  expect(status).toBe(400);
});

const ROUTES = ["/inference/v1/generate", "/v1/completions", "/v1/chat/completions", "/generate"];

test.each([
  ["all", [400, 400, 400, 400]],
  ["vllm", [400, 400, 400, 404]],
  ["vllm-old", [404, 400, 400, 404]],
  ["sglang", [404, 404, 400, 400]],
  ["prorl", [404, 404, 404, 400]],
  ["openai", [404, 404, 400, 404]],
] as const)("--wire %s serves its own routes alone", async (wire, expected) => {
  await using engine = await setup({ wire });
  const replies = await Promise.all(ROUTES.map((path) => engine.post(path, {})));
  expect(replies.map(({ status }) => status)).toEqual([...expected]);
});
