import { describe, expect, test } from "bun:test";
import { RE2JS } from "re2js";
import { type GradingMode, gradeChoice } from "../../src/verifiers/multiple-choice.ts";

const OPTIONS = [
  { letter: "A", text: "Green plants" },
  { letter: "B", text: "Blue whales" },
  { letter: "C", text: "Blue" },
];

function grade(mode: GradingMode, message: string | null, ...outputRegexes: RE2JS[]) {
  const question = { options: OPTIONS, expected: "B", mode, outputRegexes };
  const { reward, rule } = gradeChoice(question, message);
  return rule === "no_choice" || rule === "several_choices" ? null : reward;
}

describe("by mode, a message chooses the right option (1), another (0) or none (null)", () => {
  test.each<[GradingMode, string | null, number | null]>([
    ["strict_single_letter_boxed", "so \\boxed{B}", 1],
    ["strict_single_letter_boxed", "\\boxed{A} no, \\boxed{(B)}", 1],
    ["strict_single_letter_boxed", "\\boxed{\\text{B}}", 1],
    ["strict_single_letter_boxed", "\\boxed{B. }", 1],
    ["strict_single_letter_boxed", "\\boxed{A}", 0],
    ["strict_single_letter_boxed", "\\boxed{b}", null],
    ["strict_single_letter_boxed", "\\boxed{A or B}", null],
    ["strict_single_letter_boxed", "\\boxed{D}", null],
    ["strict_single_letter_boxed", "B", null],
    ["strict_single_letter_boxed", "\\boxed{Blue whales}", null],
    ["strict_single_letter_boxed", "\\boxed{B}</think> I do not know", null],
    ["strict_single_letter_boxed", null, null],
    ["lenient_boxed", "\\boxed{B}", 1],
    ["lenient_boxed", "\\boxed{\\text{green  PLANTS}}", 0],
    ["lenient_boxed", "\\boxed{Blue whales}", 1],
    ["lenient_answer_colon", "Answer: B", 1],
    ["lenient_answer_colon", "answer : (b)", 1],
    ["lenient_answer_colon", "Answer: blue  whales", 1],
    ["lenient_answer_colon", "Answer: A\nAnswer: B", null],
    ["lenient_answer_colon", "Answer: A or B", null],
    ["lenient_answer_colon", "The answer is B", null],
    ["lenient_answer_colon_md", "Answer: A\n**Answer:** **B**", 1],
    ["lenient_answer_colon_md", "**Answer: B) Blue whales**", 1],
    ["lenient_answer_colon_md", "Answer: A or B", null],
    ["gpqa", "Answer: A, so \\boxed{B}", 1],
    ["gpqa", "Answer: A\nno, Answer: B", 1],
    ["gpqa", "\\boxed{5}\nAnswer: C", 0],
    ["gpqa", "İİ Answer: B", 1],
  ])("%s: %j gives %p", (mode, message, expected) => {
    expect(grade(mode, message)).toBe(expected);
  });
});

test("a row's own expression wins, by its last match", () => {
  const regex = RE2JS.compile("choice is \\(?([A-Z])", RE2JS.CASE_INSENSITIVE);
  expect(grade("gpqa", "My choice is A. No: my choice is (b). \\boxed{A}", regex)).toBe(1);
});

test("where no expression matches, the mode decides; what one matches is not read again", () => {
  const first = RE2JS.compile("choice: (.*)", RE2JS.CASE_INSENSITIVE);
  const second = RE2JS.compile("pick ([A-Z])", RE2JS.CASE_INSENSITIVE);
  expect(grade("gpqa", "\\boxed{B}", first)).toBe(1);
  expect(grade("gpqa", "I pick b. \\boxed{A}", first, second)).toBe(1);
  expect(grade("gpqa", "choice: A or B. \\boxed{B}", first, second)).toBeNull();
  expect(grade("gpqa", "choice: (B) Blue whales.\n\\boxed{A}", first)).toBe(1);
});

test.each([
  ["boxes", "\\boxed{".repeat(100_000)],
  ["answers", "answer :".repeat(100_000)],
  ["blanks", `Answer:${" ".repeat(500_000)}x`],
  ["letters", `\\boxed{${"?".repeat(500_000)}B${"?".repeat(500_000)}`],
])("many %s are read in bounded time", (_what, message) => {
  const startMs = performance.now();
  for (const mode of ["gpqa", "lenient_boxed", "lenient_answer_colon_md"] as const) {
    expect(grade(mode, message)).not.toBe(1);
  }
  expect(performance.now() - startMs).toBeLessThan(2000);
});

test.each(["(a+)+$", "a*a*a*a*b", "a.*b|a", "(a|a)*b"])(
  "the expression %s can't stall a thread",
  (source) => {
    const startMs = performance.now();
    expect(grade("gpqa", "a".repeat(500_000), RE2JS.compile(source))).not.toBe(1);
    expect(performance.now() - startMs).toBeLessThan(2000);
  },
);
