import { expect, test } from "bun:test";
import { failureOf } from "../chat-setup.ts";
import { END, replying, tokenSetup } from "../token-setup.ts";

const RUNG = "inference_generate";

const choice = {
  index: 0,
  finish_reason: "stop",
  token_ids: [9707, 151645],
  logprobs: {
    content: [
      { token_id: 9707, logprob: -0.12, rank: 1, top_logprobs: [] },
      { token_id: 151645, logprob: -0.01, rank: 1, top_logprobs: [] },
    ],
  },
  weight_versions: [],
};

const reply = (fields: object = {}, top: object = {}) => ({
  request_id: "t7f3.4",
  output_mode: "tokens",
  usage: { prompt_tokens: 3, completion_tokens: 2 },
  choices: [{ ...choice, ...fields }],
  ...top,
});

test("a reply of a new build is read with all that it says", async () => {
  const weight_versions = [
    { version: "41", start: 0, end: 1 },
    { version: "42", start: 1, end: 2 },
  ];
  const usage = {
    prompt_tokens: 3,
    completion_tokens: 2,
    prompt_tokens_details: { cached_tokens: 2 },
  };
  await using engine = await replying(reply({ weight_versions }, { usage }));
  using client = tokenSetup(engine.url, RUNG);
  const { times, ...rest } = await client.generate({ stopTokenIds: [151645] });
  expect(times).toEqual({ totalMs: expect.any(Number), queueMs: null, firstTokenMs: null });
  expect(rest).toEqual({
    tokenIds: [9707, 151645],
    logprobs: [-0.12, -0.01],
    finishReason: "stop",
    stopTokenId: 151645,
    weightSpans: weight_versions,
    logprobsMode: null,
    weightVersion: "42",
    cachedTokens: 2,
    promptTokens: 3,
    load: null,
  });
});

test("a reply of an old build has its log-probabilities in the shape of a chat", async () => {
  const content = [
    { token: "token_id:9707", logprob: -0.12, bytes: null, top_logprobs: [] },
    { token: "token_id:151645", logprob: -0.01, bytes: null, top_logprobs: [] },
  ];
  const { index, finish_reason, token_ids } = choice;
  const old = { index, finish_reason, token_ids, logprobs: { content } };
  await using engine = await replying({ request_id: "r", choices: [old], prompt_logprobs: null });
  using client = tokenSetup(engine.url, RUNG);
  expect(await client.generate()).toMatchObject({
    tokenIds: [9707, 151645],
    logprobs: [-0.12, -0.01],
    cachedTokens: null,
    weightSpans: [],
    weightVersion: null,
  });
});

test("a log-probability of another token than the sampled one is refused", async () => {
  const content = [...choice.logprobs.content].reverse();
  await using engine = await replying(reply({ logprobs: { content } }));
  using client = tokenSetup(engine.url, RUNG);
  const failure = await failureOf(client.generate());
  expect(failure.message).toEndWith("log-probability 0 is of 151645, not of 9707");
});

test("a request leaves nothing to the server's generation_config.json", async () => {
  await using engine = await replying(reply());
  using client = tokenSetup(engine.url, RUNG);
  await client.generate({ cacheSalt: "w42", sampling: {} });
  expect(engine.line()).toBe("POST /inference/v1/generate HTTP/1.1");
  expect(engine.asked()).toEqual({
    request_id: "job-1.0",
    model: "simulated",
    token_ids: [1, 2, 3],
    sampling_params: {
      temperature: 1,
      top_p: 1,
      top_k: -1,
      n: 1,
      max_tokens: 997,
      stop_token_ids: [END],
      logprobs: 0,
      detokenize: false,
      skip_special_tokens: false,
    },
    cache_salt: "w42",
    stream: false,
    output_mode: "tokens",
  });
});

test("sampling parameters pass through, and stop strings turn the text on", async () => {
  await using engine = await replying(reply());
  using client = tokenSetup(engine.url, RUNG);
  const sampling = {
    temperature: 0.5,
    top_p: 0.9,
    top_k: 20,
    min_p: 0.1,
    seed: 7,
    stop: ["\n\n"],
    presence_penalty: 0.1,
    frequency_penalty: 0.2,
    repetition_penalty: 1.1,
    max_tokens: 5,
  };
  await client.generate({ sampling });
  expect(engine.asked().sampling_params).toMatchObject({ ...sampling, detokenize: true });
});

test.each([
  ["no choice", { choices: [] }],
  ["another output mode", reply({}, { output_mode: "text" })],
  ["no ids", reply({ token_ids: null })],
  ["an error", { error: { message: "no" } }],
])("a reply with %s is a bad one", async (_what, body) => {
  await using engine = await replying(body);
  using client = tokenSetup(engine.url, RUNG);
  expect((await failureOf(client.generate())).code).toBe("engine_bad_reply");
});
