import { expect, test } from "bun:test";
import { endpointOf } from "../../src/inference/endpoint.ts";
import { refusalOf } from "../../src/inference/refusal.ts";

const endpoint = endpointOf({ id: "b1", url: "http://h:8000/v1", apiKey: "sk-secret" });

const refusal = (status: number, body: string, headers = {}) =>
  refusalOf(endpoint, { status, headers, body: Buffer.from(body) }).toBody();

test.each([
  "This model's maximum context length is 4096 tokens. However, you requested 4097 tokens (97 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
  "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 tokens and your request has 10 input tokens (4096 > 4096 - 10).",
  "The decoder prompt (length 8357) is longer than the maximum model length of 8192. Make sure that `max_model_len` is no smaller than the number of text tokens.",
  "max_tokens must be at least 1, got -12.",
  "max_tokens=100000 cannot be greater than max_model_len=4096. Please request fewer output tokens. (parameter=max_tokens, value=100000)",
  "max_completion_tokens is too large: 100000.This model supports at most 4096 completion tokens.",
  "The input (5000 tokens) is longer than the model's context length (4096 tokens).",
  "Requested token count exceeds the model's maximum context length of 4096 tokens. You requested a total of 5000 tokens: 1000 tokens from the input messages and 4000 tokens for the completion.",
  "Input length (5000 tokens) exceeds the maximum allowed length (4090 tokens). Use a shorter input or enable --allow-auto-truncate.",
  "Input length (265330) exceeds model's maximum context length (262144).",
  "request (9412 tokens) exceeds the available context size (8192 tokens), try increasing it",
])("context overflow is recognised in %p", (message) => {
  const shapes = [{ error: { message } }, { object: "error", message }, { detail: message }];
  for (const shape of shapes) {
    expect(refusal(400, JSON.stringify(shape)).code).toBe("context_exhausted");
  }
  expect(refusal(500, message).code).toBe("engine_bad_reply");
});

test("context overflow is recognised by its code", () => {
  const error = { message: "too long", code: "context_length_exceeded" };
  expect(refusal(400, JSON.stringify({ error })).code).toBe("context_exhausted");
});

test("a refusal shows what the engine said, cut, on one line and without the key", () => {
  const error = { message: `bad key\n\u001b[31m sk-secret ${"x".repeat(5_000)}` };
  const body = refusal(401, JSON.stringify({ error }));
  expect(body).toEqual({
    code: "engine_refused",
    message: expect.stringMatching(
      /^backend "b1" \(http:\/\/h:8000\/v1\) answered 401: bad key \[31m \[api key\] x+…$/,
    ),
    boundary: "engine",
    retryable: false,
    mend: "name the variable that holds the backend's API key by --api-key-env (api_key_env)",
  });
  expect(body.message.length).toBeLessThan(600);
});

test("a validation error of another kind is not taken for context overflow", () => {
  const detail = [{ loc: ["body", "temperature"], msg: "must be positive" }];
  expect(refusal(422, JSON.stringify({ detail })).code).toBe("engine_refused");
  expect(refusal(400, "max_tokens must be at least 1, got 0.").code).toBe("engine_refused");
});
