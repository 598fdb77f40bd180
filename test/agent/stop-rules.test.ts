import { describe, expect, test } from "bun:test";
import { isLooping, type Step } from "../../src/agent/stop-rules.ts";

/** A step by its letter: `a` succeeded, `A` is the same action failed, `a1` has another observation. */
function steps(text: string): Step[] {
  return text.split(" ").map((word) => {
    const letter = word.charAt(0);
    const ok = letter === letter.toLowerCase();
    return { action: letter.toLowerCase(), observation: `saw ${word}`, ok };
  });
}

describe("the agent is in a loop", () => {
  test.each([
    ["a a a a", "the same step four times"],
    ["x a a a a", "the same step four times, after another"],
    ["A A A", "one action that fails three times"],
    ["A1 A2 A3", "one action that fails three times, each time in another way"],
    ["x A1 A1 A2", "one action that fails three times, after another"],
    ["a b a b a b", "two steps in turn, three times"],
    ["x a b a b a b", "two steps in turn, after another"],
    ["A b A b A b", "two steps in turn, of which one fails"],
  ])("%s: %s", (text) => {
    expect(isLooping(steps(text))).toBe(true);
  });
});

describe("the agent is in no loop", () => {
  test.each([
    ["a", "one step"],
    ["a a a", "the same step three times only"],
    ["a a a b", "the same step three times, then another"],
    ["a a b a a", "the same step with another between"],
    ["a1 a2 a3 a4", "one action that succeeds with a new observation each time"],
    ["A A", "one action that fails twice only"],
    ["A A b", "one action that failed twice and was given up"],
    ["A A a", "one action that failed twice and then succeeded"],
    ["A b A A", "one action that fails three times with another between"],
    ["A B C", "three actions that fail"],
    ["a b a b a", "two steps in turn, two times and a half"],
    ["b a b a b x", "two steps in turn that were given up"],
    ["a b a b a c", "two steps in turn whose last one is new"],
    ["a1 b a2 b a3 b", "two actions in turn, of which one makes progress"],
    ["a b c a b c", "three steps in turn"],
  ])("%s: %s", (text) => {
    expect(isLooping(steps(text))).toBe(false);
  });

  test("where different actions show it the same", () => {
    const same = { observation: "nothing found", ok: true };
    expect(isLooping(["a", "b", "c", "d"].map((action) => ({ action, ...same })))).toBe(false);
  });

  test("before its first step", () => {
    expect(isLooping([])).toBe(false);
  });
});
