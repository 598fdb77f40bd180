import { expect, test } from "bun:test";
import { ServiceError } from "../../src/errors.ts";
import { checkTokens } from "../../src/inference/check-tokens.ts";
import { NOTHING_SAID, type RawTokens } from "../../src/inference/wires/wire.ts";

const GOOD: RawTokens = {
  ...NOTHING_SAID,
  tokenIds: [5, 6, 9],
  logprobs: [-0.5, 0, -3],
  finish: "stop",
};

function check(fields: Partial<RawTokens>) {
  const expected = { promptIds: [1, 2], stopTokenIds: [9], maxTokens: 3, logprobs: true };
  return checkTokens('backend "b1"', { ...GOOD, ...fields }, { ...expected, vocabSize: 10 });
}

test("a reply that agrees with itself is data", () => {
  const weightSpans = [
    { version: "1", start: 0, end: 0 },
    { version: "2", start: 0, end: 3 },
  ];
  const counts = { promptTokens: 2, completionTokens: 3, cachedTokens: 2, promptIds: [1, 2] };
  expect(check({ ...counts, weightSpans, logprobIds: [5, 6, 9] })).toEqual({
    tokenIds: [5, 6, 9],
    logprobs: [-0.5, 0, -3],
    finishReason: "stop",
    stopTokenId: 9,
    weightSpans,
    weightVersion: null,
    cachedTokens: 2,
  });
});

test.each<[string, Partial<RawTokens>]>([
  ["there are 3 ids and 2 log-probabilities", { logprobs: [-1, -1] }],
  ["there are 3 ids and 4 log-probabilities", { logprobs: [-1, -1, -1, -1] }],
  ["there are no log-probabilities", { logprobs: null }],
  ["log-probability 1 is null", { logprobs: [-1, null, -1] }],
  ["log-probability 0 is null", { logprobs: [Number.NaN, -1, -1] }],
  ['log-probability 0 is "-1"', { logprobs: ["-1", -1, -1] }],
  ["log-probability 2 is 0.5", { logprobs: [-1, -1, 0.5] }],
  ["log-probability 2 is -9999", { logprobs: [-1, -1, -9999] }],
  ["id 0 is 10, not a whole number from 0 to 9", { tokenIds: [10, 6, 9] }],
  ["id 1 is -1, not a whole number from 0 to 9", { tokenIds: [5, -1, 9] }],
  ["id 1 is 1.5, not a whole number from 0 to 9", { tokenIds: [5, 1.5, 9] }],
  ["id 1 is null, not a whole number from 0 to 9", { tokenIds: [5, null, 9] }],
  ['id 1 is "6", not a whole number from 0 to 9', { tokenIds: [5, "6", 9] }],
  ["log-probability 0 is of 6, not of 5", { logprobIds: [6, 6, 9] }],
  ["the finish reason is null", { finish: null }],
  ["the finish reason is missing", { finish: undefined }],
  ['the finish reason is "error"', { finish: "error" }],
  ["there are 3 ids, and usage counts 2", { completionTokens: 2 }],
  ["the prompt has 2 ids, and usage counts 3", { promptTokens: 3 }],
  ["3 tokens of a prompt of 2 were cached", { cachedTokens: 3 }],
  ["the engine saw another prompt than was sent", { promptIds: [1, 3] }],
  ["there are 4 ids, and 3 were asked for", { tokenIds: [5, 5, 5, 9], logprobs: [0, 0, 0, 0] }],
  ["it ended by length without a token", { tokenIds: [], logprobs: [], finish: "length" }],
  ["it went on after the stop id 9 at 1", { tokenIds: [5, 9, 6] }],
  ["a weight version spans 1 to 3", { weightSpans: [{ version: "1", start: 1, end: 3 }] }],
  ["a weight version spans 0 to -1", { weightSpans: [{ version: "1", start: 0, end: -1 }] }],
  ["weight versions span 2 of 3 tokens", { weightSpans: [{ version: "1", start: 0, end: 2 }] }],
])("%s: that is an error, never data", (problem, fields) => {
  let thrown: unknown;
  try {
    check(fields);
  } catch (error) {
    thrown = error;
  }
  expect(thrown).toBeInstanceOf(ServiceError);
  expect((thrown as ServiceError).toBody()).toEqual({
    code: "token_invariant",
    message: `backend "b1": the reply's tokens are wrong: ${problem}`,
    boundary: "engine",
    retryable: true,
  });
});
