import { expect, test } from "bun:test";
import type { TokenSegment, Turn } from "../../src/trajectory/record.ts";
import { tokenProblem } from "../../src/trajectory/validate.ts";
import { exampleTrajectory } from "../support/trajectories.ts";

const [TURN] = exampleTrajectory().turns as [Turn];

/** A turn that sampled so many ids of weights that nobody knows. */
const turnOf = (tokens: number): Turn => ({ ...TURN, completion_tokens: tokens, weight_spans: [] });

const GOOD: TokenSegment = {
  ids: [1, 2, 3, 4, 5],
  spans: [
    { kind: "prompt", start: 0, end: 2, mask: 0 },
    { kind: "sampled", start: 2, end: 4, mask: 1, turn: 0 },
    { kind: "observation", start: 4, end: 5, mask: 0 },
  ],
  logprobs: [-0.5, 0],
  fork: null,
};

const FORK = { from: 0, common: 3, reason: "messages_replaced", detail: "" };

/** What the first segment said is a prompt in the second. */
const FORKED: TokenSegment = {
  ids: [1, 2, 3, 8, 9],
  spans: [
    { kind: "prompt", start: 0, end: 4, mask: 0 },
    { kind: "sampled", start: 4, end: 5, mask: 1, turn: 2 },
  ],
  logprobs: [-1],
  fork: FORK,
};

const TURNS = [turnOf(2), turnOf(0), turnOf(1)];

test("segments whose parts fit together are data, with or without log-probabilities", () => {
  expect(tokenProblem([GOOD, FORKED], TURNS)).toBeNull();
  expect(tokenProblem([GOOD, { ...FORKED, logprobs: null }], TURNS)).toBeNull();
  expect(tokenProblem([], [{ ...TURN, completion_tokens: null }])).toBeNull();
});

test("a turn may have been nothing but an end that the template replaced", () => {
  const spans: TokenSegment["spans"] = [
    { kind: "prompt", start: 0, end: 2, mask: 0 },
    { kind: "sampled", start: 2, end: 2, mask: 1, turn: 0, dropped: 7 },
    { kind: "observation", start: 2, end: 5, mask: 0 },
  ];
  expect(tokenProblem([{ ...GOOD, spans, logprobs: [] }], [turnOf(1)])).toBeNull();
});

test("a fork may share what no call has shown the engine of the segment before", () => {
  const ids = [1, 2, 3, 4, 5, 6, 7];
  const spans: TokenSegment["spans"] = [{ kind: "prompt", start: 0, end: 7, mask: 0 }];
  const fork = { ...FORK, common: 6 };
  expect(tokenProblem([GOOD, { ids, spans, logprobs: [], fork }], [turnOf(2)])).toBeNull();
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
  ["a gap at 2", { spans: [prompt, { ...sampled, end: 2 }, { ...observation, start: 2 }] }],
  ["a gap at 4", { spans: [prompt, sampled, { ...observation, end: 4 }] }],
  ["the spans end at 4 of 5", { spans: [prompt, sampled] }],
  ["the mask of 2 to 4 is 0", { spans: [prompt, { ...sampled, mask: 0 }, observation] }],
  ["the mask of 4 to 5 is 1", { spans: [prompt, sampled, { ...observation, mask: 1 }] }],
  ["begin with a prompt", { spans: [{ ...prompt, kind: "observation" }, sampled, observation] }],
  ["1 log-probabilities for 2", { logprobs: [-1] }],
  ["not finite", { logprobs: [-1, Number.NaN] }],
  ["not finite", { logprobs: [-1, Number.NEGATIVE_INFINITY] }],
  ["no fork", { fork: FORK }],
  ["of turn undefined", { spans: [prompt, { ...sampled, turn: undefined as never }, observation] }],
  ["of turn 3, after turn -1 of 3", { spans: [prompt, { ...sampled, turn: 3 }, observation] }],
  ["of turn 2, after turn 2", { spans: [prompt, { ...sampled, turn: 2 }, observation] }],
])("a segment is refused with its reason: %s", (reason, change) => {
  const problem = tokenProblem([{ ...GOOD, ...change }, FORKED], TURNS);
  expect(problem).toContain(reason);
});

test.each<[string, Partial<TokenSegment>]>([
  ["only the first", { fork: null }],
  ["it forks from segment 1", { fork: { ...FORK, from: 1 } }],
  ["it shares 6 ids and has 5", { fork: { ...FORK, common: 6 } }],
  ["id 3 is not the one of segment 0", { fork: { ...FORK, common: 4 } }],
])("a fork is refused with its reason: %s", (reason, change) => {
  const problem = tokenProblem([GOOD, { ...FORKED, ...change }], TURNS);
  expect(problem).toContain(`segment 1: ${reason}`);
});

const version = (name: string, start: number, end: number) => ({ version: name, start, end });

test.each<[string, Partial<Turn>]>([
  ["2 sampled ids, and 3 counted", { completion_tokens: 3 }],
  ["2 sampled ids, and null counted", { completion_tokens: null }],
  ["spans 1 to 2", { weight_spans: [version("7", 1, 2)] }],
  ["span 1 of 2 ids", { weight_spans: [version("7", 0, 1)] }],
  ["of version 6, and it says 7", { weight_spans: [version("7", 0, 1), version("6", 1, 2)] }],
])("a turn is refused with its reason: %s", (reason, change) => {
  const turns = [{ ...turnOf(2), ...change }];
  const problem = tokenProblem([GOOD], turns);
  expect(problem).toContain("turn 0: ");
  expect(problem).toContain(reason);
});
