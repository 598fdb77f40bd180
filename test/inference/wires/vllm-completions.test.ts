import { expect, test } from "bun:test";
import { failureOf } from "../chat-setup.ts";
import { END, replying, tokenSetup } from "../token-setup.ts";

const completion = (choice: object) => ({
  id: "cmpl-1",
  object: "text_completion",
  model: "simulated",
  choices: [{ index: 0, text: "Hello<|im_end|>", finish_reason: "stop", ...choice }],
  usage: { prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 },
});

const WITH_IDS = completion({
  token_ids: [9707, 151645],
  prompt_token_ids: [1, 2, 3],
  stop_reason: 151645,
  logprobs: { token_logprobs: [-0.12, -0.01] },
});

const TEXT_IDS = completion({
  stop_reason: null,
  logprobs: {
    text_offset: [0, 5],
    token_logprobs: [-0.12, -0.01],
    tokens: ["token_id:9707", "token_id:151645"],
    top_logprobs: null,
  },
});

const SAMPLED = {
  tokenIds: [9707, 151645],
  logprobs: [-0.12, -0.01],
  finishReason: "stop",
  promptTokens: 3,
};

test("a completion with token ids is read, and the stop id taken from its stop reason", async () => {
  await using engine = await replying(WITH_IDS);
  using client = tokenSetup(engine.url, "completions");
  expect(await client.generate()).toMatchObject({ ...SAMPLED, stopTokenId: 151645 });
  expect(engine.line()).toBe("POST /v1/completions HTTP/1.1");
  expect(engine.asked()).toEqual({
    model: "simulated",
    prompt: [1, 2, 3],
    temperature: 1,
    top_p: 1,
    top_k: -1,
    n: 1,
    max_tokens: 100,
    stop_token_ids: [END],
    logprobs: 0,
    return_token_ids: true,
    skip_special_tokens: false,
    stream: false,
  });
});

test("an old build writes ids as text where the tokens stand", async () => {
  await using engine = await replying(TEXT_IDS);
  using client = tokenSetup(engine.url, "completions_text_ids");
  const reply = await client.generate({ stopTokenIds: [151645], cacheSalt: "w1" });
  expect(reply).toMatchObject({ ...SAMPLED, stopTokenId: 151645 });
  expect(engine.asked()).toMatchObject({ return_tokens_as_token_ids: true, cache_salt: "w1" });
});

test("an old build's reply is no completion with token ids", async () => {
  await using engine = await replying(TEXT_IDS);
  using client = tokenSetup(engine.url, "completions");
  const failure = await failureOf(client.generate());
  expect(failure.code).toBe("engine_bad_reply");
  expect(failure.message).toEndWith("choices.0.token_ids: is missing");
});

test("tokens that are text, not ids, are refused", async () => {
  const logprobs = { token_logprobs: [-1, -1], tokens: ["Hello", "<|im_end|>"] };
  await using engine = await replying(completion({ logprobs }));
  using client = tokenSetup(engine.url, "completions_text_ids");
  const failure = await failureOf(client.generate());
  expect(failure.code).toBe("token_invariant");
  expect(failure.message).toEndWith('id 0 is "Hello", not a whole number from 0 to 2147483647');
});

test("a prompt that the engine changed is refused", async () => {
  const choice = { ...WITH_IDS.choices[0], prompt_token_ids: [0, 1, 2, 3] };
  await using engine = await replying({ choices: [choice] });
  using client = tokenSetup(engine.url, "completions");
  const failure = await failureOf(client.generate());
  expect(failure.message).toEndWith("the engine saw another prompt than was sent");
});
