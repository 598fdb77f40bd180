import { describe, expect, test } from "bun:test";
import { lastBoxed } from "../../src/verifiers/boxed.ts";

describe("lastBoxed", () => {
  const cases: [name: string, text: string, content: string | null][] = [
    ["finds a plain box", "So \\boxed{42}.", "42"],
    ["takes the last of several", "\\boxed{1} no, \\boxed{2}", "2"],
    ["takes an \\fbox too", "\\boxed{1} and \\fbox{3}", "3"],
    ["keeps nested braces", "\\boxed{\\frac{1}{\\sqrt{2}}}", "\\frac{1}{\\sqrt{2}}"],
    ["takes the innermost of nested boxes", "\\boxed{x = \\boxed{5}}", "5"],
    ["does not count escaped braces", "\\boxed{\\left\\{ 1,2 \\right.}", "\\left\\{ 1,2 \\right."],
    ["allows blanks before the brace", "\\boxed  {7}", "7"],
    ["trims the content", "\\boxed{ 7 }", "7"],
    ["reads a box without braces", "\\boxed 5 apples", "5"],
    ["ends a box without braces at the formula", "$\\boxed 5$ apples", "5"],
    ["gives an empty box as empty", "\\boxed{}", ""],
    ["finds nothing without a box", "The answer is 42.", null],
    ["finds nothing in an open box", "\\boxed{42", null],
    ["does not fall back from a broken last box", "\\boxed{1} then \\boxed{2", null],
    ["finds nothing after a bare command", "see \\boxed", null],
    ["does not take another command for a box", "\\boxedtext{1}", null],
    ["looks past another command", "\\boxed{1} \\boxedtext{2}", "1"],
  ];
  test.each(cases)("%s", (_name, text, content) => {
    expect(lastBoxed(text)).toBe(content);
  });

  const megabyte = 1_000_000;
  const hostile: [name: string, text: string][] = [
    ["opened boxes", "\\boxed{".repeat(megabyte / 7)],
    ["box commands", "\\boxed".repeat(megabyte / 6)],
    ["commands that only begin like a box", "\\boxedx".repeat(megabyte / 7)],
    ["open braces", `\\boxed${"{".repeat(megabyte)}`],
    ["blanks", `\\boxed${" ".repeat(megabyte)}`],
    ["backslashes", `\\boxed{${"\\".repeat(megabyte)}`],
  ];
  test.each(hostile)("reads a megabyte of %s in one pass", (_name, text) => {
    const start = performance.now();
    expect(lastBoxed(text)).toBeNull();
    expect(performance.now() - start).toBeLessThan(1_000);
  });
});
