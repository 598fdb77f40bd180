import { expect, test } from "bun:test";
import { failureOf } from "../chat-setup.ts";
import { END, replying, tokenSetup } from "../token-setup.ts";

test.each([
  ["the stop id at its end", [5, END], "stop", END],
  ["as many ids as were asked for", [5, 6], "length", null],
  ["the stop id as its last one", [END], "stop", END],
  ["another end of turn", [5], "stop", null],
] as const)("a reply with %s ended by %p", async (_what, ids, finishReason, stopTokenId) => {
  const logprobs = ids.map(() => -1);
  await using engine = await replying({ response_ids: ids, logprobs });
  using client = tokenSetup(engine.url, "prorl_generate");
  const reply = await client.generate({ sampling: { max_tokens: 2 } });
  expect(reply).toMatchObject({ tokenIds: [...ids], logprobs, finishReason, stopTokenId });
});

test("a reply without log-probabilities has none, where the engine never gives any", async () => {
  await using engine = await replying({ response_ids: [5, END], logprobs: null });
  using silent = tokenSetup(engine.url, "prorl_generate", { logprobs: false });
  expect((await silent.generate()).logprobs).toBeNull();
  using client = tokenSetup(engine.url, "prorl_generate");
  expect((await failureOf(client.generate())).code).toBe("token_invariant");
});

test("a request holds sampling parameters and nothing else", async () => {
  await using engine = await replying({ response_ids: [5, END], logprobs: [-1, -1] });
  using client = tokenSetup(engine.url.replace("/v1", ""), "prorl_generate");
  await client.generate({ sampling: { seed: 0, max_tokens: 50 }, cacheSalt: "w42" });
  expect(engine.line()).toBe("POST /generate HTTP/1.1");
  expect(engine.asked()).toEqual({
    prompt_ids: [1, 2, 3],
    temperature: 1,
    top_p: 1,
    top_k: -1,
    n: 1,
    max_tokens: 50,
    seed: 0,
    stop_token_ids: [END],
  });
});

test("where the context length is not known, max_tokens has to be given", async () => {
  await using engine = await replying({ response_ids: [5], logprobs: [-1] });
  using client = tokenSetup(engine.url, "prorl_generate", { max_model_len: null });
  const failure = await failureOf(client.generate({ sampling: {} }));
  expect(failure).toMatchObject({ code: "invalid_field", field: "sampling.max_tokens" });
  expect(engine.requests).toHaveLength(0);
});
