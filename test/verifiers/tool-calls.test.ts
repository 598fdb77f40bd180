import { expect, test } from "bun:test";
import { callsInText, gradeToolCalls } from "../../src/verifiers/tool-calls.ts";

const EXPECTED = [
  { name: "add", arguments: { a: 1, b: { c: [1, 2], d: "x" } } },
  { name: "stop", arguments: {} },
];
const ADD = { name: "add", arguments: '{"b": {"d": "x", "c": [1, 2]}, "a": 1}' };
const STOP = { name: "stop", arguments: {} };

test.each([
  [[ADD, STOP], 1, "tool_calls_equal"],
  [[STOP, ADD], 1, "tool_calls_equal"],
  [[ADD], 0, "tool_call_missing"],
  [[ADD, ADD, STOP], 0, "tool_call_surplus"],
  [[{ ...ADD, arguments: '{"a": 1}' }, STOP], 0, "tool_call_missing"],
  [[{ ...ADD, arguments: "{" }, STOP], 0, "tool_call_missing"],
  [[{ ...ADD, name: "sub" }, STOP], 0, "tool_call_missing"],
  [[], 0, "no_tool_call"],
])("%j earns %p", (made, reward, rule) => {
  const verdict = gradeToolCalls(made, EXPECTED);
  expect([verdict.reward, verdict.rule]).toEqual([reward, rule]);
});

test("a call with arguments too deep within each other is a wrong one, not the verifier's failure", () => {
  const deep = `{"a": ${"[".repeat(90_000)}${"]".repeat(90_000)}}`;
  expect(gradeToolCalls([{ ...ADD, arguments: deep }], EXPECTED).reward).toBe(0);
});

test("no call where none is expected is right", () => {
  expect(gradeToolCalls([], []).reward).toBe(1);
});

test("calls that an engine left in the text are found there", () => {
  const text =
    'I call <tool_call>{"name": "stop"}</tool_call><tool_call>{bad}</tool_call><tool_call>{"name"';
  expect(callsInText(text)).toEqual([STOP]);
});
