import { expect, test } from "bun:test";
import type { TokenSegment } from "../../src/trajectory/record.ts";
import { validateSegments } from "../../src/trajectory/validate.ts";
import { failureOf } from "../support/failure.ts";

const GOOD: TokenSegment = {
  ids: [1, 2, 3, 4, 5],
  spans: [
    { kind: "prompt", start: 0, end: 2, mask: 0 },
    { kind: "sampled", start: 2, end: 4, mask: 1 },
    { kind: "observation", start: 4, end: 5, mask: 0 },
  ],
  logprobs: [-0.5, 0],
  fork: null,
};

test("segments whose parts fit together are data, with or without log-probabilities", () => {
  const fork = { from: 0, common: 1, reason: "messages_replaced", detail: "" };
  validateSegments([GOOD, { ...GOOD, fork }, { ...GOOD, fork, logprobs: null }]);
  validateSegments([]);
});

const [prompt, sampled, observation] = GOOD.spans as [
  TokenSegment["spans"][0],
  TokenSegment["spans"][0],
  TokenSegment["spans"][0],
];

test.each<[string, Partial<TokenSegment>]>([
  ["no whole number", { ids: [1, 2, 3.5, 4, 5] }],
  ["no whole number", { ids: [1, 2, -3, 4, 5] }],
  ["a gap at 2", { spans: [prompt, { ...sampled, start: 3 }, observation] }],
  ["a gap at 4", { spans: [prompt, sampled, { ...observation, end: 4 }] }],
  ["the spans end at 4 of 5", { spans: [prompt, sampled] }],
  ["the mask of 2 to 4 is 0", { spans: [prompt, { ...sampled, mask: 0 }, observation] }],
  ["the mask of 4 to 5 is 1", { spans: [prompt, sampled, { ...observation, mask: 1 }] }],
  ["begin with a prompt", { spans: [{ ...prompt, kind: "observation" }, sampled, observation] }],
  ["1 log-probabilities for 2", { logprobs: [-1] }],
  ["not finite", { logprobs: [-1, Number.NaN] }],
  ["not finite", { logprobs: [-1, Number.NEGATIVE_INFINITY] }],
  ["no fork", { fork: { from: 0, common: 1, reason: "messages_replaced", detail: "" } }],
])("a segment is refused with its reason: %s", async (reason, change) => {
  const failure = await failureOf(() => validateSegments([{ ...GOOD, ...change }]));
  expect(failure.code).toBe("token_invariant");
  expect(failure.message).toContain(reason);
});
