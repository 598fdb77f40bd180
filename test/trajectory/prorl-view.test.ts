import { expect, test } from "bun:test";
import { prorlView } from "../../src/trajectory/prorl-view.ts";
import { exampleTrajectory } from "../support/trajectories.ts";

test("the ids of all messages before a model's are its prompt", () => {
  const { messages, linear } = prorlView(exampleTrajectory());
  expect(linear).toBe(true);
  for (const [index, { role, input_ids }] of messages.entries()) {
    if (role !== "assistant") expect(input_ids).toBeNull();
    else
      expect(messages.slice(0, index).flatMap(({ token_ids }) => token_ids ?? [])).toEqual(
        input_ids as number[],
      );
  }
});

test("a model's message has what was sampled, and its log-probabilities", () => {
  const { messages } = prorlView(exampleTrajectory());
  const said = messages.filter(({ role }) => role === "assistant");
  expect(said.map(({ token_ids }) => token_ids)).toEqual([
    [11, 12, 13],
    [31, 32],
  ]);
  expect(said.map(({ logprobs }) => logprobs)).toEqual([
    [-0.5, 0, -1.25],
    [-2, -0.0625],
  ]);
  expect(said[0]?.tool_calls).toEqual([
    { name: "think", arguments: '{"n": 0' },
    { name: "think", arguments: '{"n": 1' },
  ]);
});

test("no message is without ids, and the last one is the model's", () => {
  const { messages } = prorlView(exampleTrajectory());
  expect(messages.map(({ role }) => role)).toEqual([
    "system",
    "user",
    "assistant",
    "tool",
    "tool",
    "assistant",
  ]);
  expect(messages.every(({ token_ids }) => (token_ids?.length ?? 0) > 0)).toBe(true);
});

test("a rewritten history is said not to be linear, and each call keeps its own prompt", () => {
  const given = exampleTrajectory();
  const [first] = given.segments;
  if (!first) throw new Error("there is no segment");
  const second = {
    ids: [0, 65_535, 77, 31, 32],
    spans: [
      { kind: "prompt" as const, start: 0, end: 3, mask: 0 as const },
      { kind: "sampled" as const, start: 3, end: 5, mask: 1 as const, turn: 1 },
    ],
    logprobs: [-2, -0.0625],
    fork: { from: 0, common: 2, reason: "messages_replaced", detail: "" },
  };
  const kept = { ...first, spans: first.spans.slice(0, 2), logprobs: [-0.5, 0, -1.25] };
  const { messages, linear } = prorlView({ ...given, segments: [kept, second] });
  expect(linear).toBe(false);
  expect(messages.at(-1)).toMatchObject({ input_ids: [0, 65_535, 77], token_ids: [31, 32] });
  expect(messages[2]).toMatchObject({ input_ids: first.ids.slice(0, 4), token_ids: [11, 12, 13] });
});

test("without ids there are none, and the input ids can be left out", () => {
  const text = prorlView({ ...exampleTrajectory(), token_ids: "absent", segments: [] });
  expect(text.linear).toBe(false);
  expect(text.messages.every(({ token_ids }) => token_ids === null)).toBe(true);
  const short = prorlView(exampleTrajectory(), { inputIds: false });
  expect(short.messages.every(({ input_ids }) => input_ids === null)).toBe(true);
});
