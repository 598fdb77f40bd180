import { expect, test } from "bun:test";
import { failureOf } from "../chat-setup.ts";
import { END, replying, tokenSetup } from "../token-setup.ts";

const reply = (meta: object = {}, top: object = {}) => ({
  text: "Hello<|im_end|>",
  output_ids: [9707, 151645],
  meta_info: {
    id: "t7f3.4",
    finish_reason: { type: "stop", matched: 151645 },
    prompt_tokens: 3,
    completion_tokens: 2,
    cached_tokens: 1,
    weight_version: "42",
    output_token_logprobs: [
      [-0.12, 9707, null],
      [-0.01, 151645, null],
    ],
    num_running_reqs: 11,
    num_waiting_reqs: 2,
    ...meta,
  },
  ...top,
});

test("a reply is read with its load and the version at its end", async () => {
  await using engine = await replying(reply({ queue_time: 0.25 }));
  using client = tokenSetup(engine.url, "sglang_generate");
  expect(await client.generate()).toEqual({
    tokenIds: [9707, 151645],
    logprobs: [-0.12, -0.01],
    finishReason: "stop",
    stopTokenId: 151645,
    ...{ weightSpans: [], logprobsMode: null },
    weightVersion: "42",
    cachedTokens: 1,
    promptTokens: 3,
    load: { running: 11, waiting: 2 },
    times: { totalMs: expect.any(Number), queueMs: 250, firstTokenMs: null },
  });
});

test("weight versions come as spans where the build has them", async () => {
  const weight_versions = [
    { version: "41", start: 0, end: 1 },
    { version: "42", start: 1, end: 2 },
  ];
  await using engine = await replying(reply({ weight_versions }));
  using client = tokenSetup(engine.url, "sglang_generate");
  expect((await client.generate()).weightSpans).toEqual(weight_versions);
});

test.each([
  [{ type: "length", length: 2 }, "length", null],
  [{ type: "abort", message: "aborted" }, "abort", null],
  [{ type: "stop", matched: "\n\n" }, "stop", null],
  ["length", "length", null],
] as const)("the finish reason %j is %p", async (finish_reason, finishReason, stopTokenId) => {
  await using engine = await replying(reply({ finish_reason }));
  using client = tokenSetup(engine.url, "sglang_generate");
  expect(await client.generate()).toMatchObject({ finishReason, stopTokenId });
});

test("an abort before the first token is an empty turn, not a failure", async () => {
  const meta = {
    finish_reason: { type: "abort", message: "aborted" },
    completion_tokens: 0,
    output_token_logprobs: [],
  };
  await using engine = await replying(reply(meta, { output_ids: [] }));
  using client = tokenSetup(engine.url, "sglang_generate");
  expect(await client.generate()).toMatchObject({ tokenIds: [], finishReason: "abort" });
});

test("ids that differ from those beside the log-probabilities are refused", async () => {
  await using engine = await replying(reply({}, { output_ids: [9707, 151643] }));
  using client = tokenSetup(engine.url, "sglang_generate");
  const failure = await failureOf(client.generate());
  expect(failure.message).toEndWith("log-probability 1 is of 151645, not of 151643");
});

test("a request has SGLang's names", async () => {
  await using engine = await replying(reply());
  using client = tokenSetup(engine.url, "sglang_generate");
  await client.generate({ cacheSalt: "w42", sampling: { seed: 7, min_p: 0.1, stop: ["x"] } });
  expect(engine.line()).toBe("POST /generate HTTP/1.1");
  expect(engine.asked()).toEqual({
    rid: "job-1.0",
    input_ids: [1, 2, 3],
    sampling_params: {
      max_new_tokens: 997,
      temperature: 1,
      top_p: 1,
      top_k: -1,
      n: 1,
      min_p: 0.1,
      stop: ["x"],
      sampling_seed: 7,
      stop_token_ids: [END],
      skip_special_tokens: false,
      no_stop_trim: true,
    },
    return_logprob: true,
    logprob_start_len: -1,
    extra_key: "w42",
    stream: false,
  });
});
