import { describe, expect, test } from "bun:test";
import { gradeMathAnswer } from "../../src/verifiers/math-answer.ts";
import { HOSTILE } from "./hostile-answers.ts";
import { EQUAL, NOT_EQUAL } from "./math-pairs.ts";

const box = (answer: string) => `Therefore the answer is $\\boxed{${answer}}$.`;

describe("a boxed answer that is the truth earns the reward", () => {
  test.each(EQUAL)("%s is answered by %s", async (truth, answer) => {
    expect(await gradeMathAnswer(box(answer), [truth])).toMatchObject({ reward: 1 });
  });
});

describe("a boxed answer that is not the truth earns nothing", () => {
  test.each(NOT_EQUAL)("%s is not answered by %s", async (truth, answer) => {
    expect(await gradeMathAnswer(box(answer), [truth])).toMatchObject({ reward: 0 });
  });
});

describe("the rule says how a verdict came about", () => {
  const cases: [rule: string, answer: string | null, truth: string][] = [
    ["no_answer", null, "5"],
    ["no_answer", " \n", "5"],
    ["no_boxed_answer", "It is 5.", "5"],
    ["no_boxed_answer", "\\boxed{5", "5"],
    ["no_boxed_answer", "\\boxed{}", "5"],
    ["answer_too_long", box("1+".repeat(2_000)), "5"],
    ["equal_string", box("\\dfrac{1}{2}"), "\\frac{1}{2}"],
    ["equal_number", box("0.5"), "\\frac{1}{2}"],
    ["equal_choice", box("\\text{(C)}"), "C"],
    ["equal_expression", box("x^2+2x+1"), "(x+1)^2"],
    ["equal_words", box("yes"), "\\text{Yes}"],
    ["equal_list", box("2,1"), "1,2"],
    ["equal_set", box("\\{2,1\\}"), "\\{1,2\\}"],
    ["equal_tuple", box("(0.5,1)"), "(\\frac{1}{2},1)"],
    ["equal_relation", box("2x+2y=2"), "x+y=1"],
    [
      "equal_matrix",
      box("\\begin{bmatrix}1\\\\2\\end{bmatrix}"),
      "\\begin{pmatrix}1\\\\2\\end{pmatrix}",
    ],
    ["not_equal", box("6"), "5"],
    ["not_equal", box("\\begin{pmatrix}1\\\\2\\end{pmatrix}"), "5"],
    ["unparsable_answer", box("5 \\heartsuit"), "5"],
    ["unparsable_truth", box("5"), "\\int_0^1 f(x)\\,dx"],
  ];
  test.each(cases)("%s for %s against %s", async (rule, answer, truth) => {
    const { rule: given, reward } = await gradeMathAnswer(answer, [truth]);
    expect({ given, reward }).toEqual({ given: rule, reward: rule.startsWith("equal_") ? 1 : 0 });
  });

  test("the reason is one sentence that names both sides", async () => {
    expect(await gradeMathAnswer(box("6"), ["5"])).toEqual({
      reward: 0,
      rule: "not_equal",
      reason: 'The answer "6" is not "5".',
    });
  });
});

test("any accepted truth counts", async () => {
  expect(await gradeMathAnswer(box("x+1"), ["7", "\\int x", "1+x"])).toMatchObject({ reward: 1 });
});

test("an unparsable truth is still compared by its spelling", async () => {
  const truth = "\\int_0^1 f(x)\\,dx";
  expect(await gradeMathAnswer(box("\\int_0^1 f(x) dx"), [truth])).toMatchObject({ reward: 1 });
});

test("an answer that costs too much is not blamed on the truth", async () => {
  const answer = Array(100).fill("2500!").join("+");
  expect(await gradeMathAnswer(box(answer), ["\\sqrt{2}"])).toMatchObject({
    rule: "unparsable_answer",
  });
});

test("a grade without truths is a mistake of the caller", async () => {
  await expect(gradeMathAnswer(box("5"), [])).rejects.toThrow("at least one truth");
});

describe("a hostile answer ends soon and earns nothing", () => {
  test.each(HOSTILE)("%s", async (_name, answer) => {
    const start = performance.now();
    expect(await gradeMathAnswer(box(answer), ["x+5"])).toMatchObject({ reward: 0 });
    expect(performance.now() - start).toBeLessThan(2_000);
  });
});
