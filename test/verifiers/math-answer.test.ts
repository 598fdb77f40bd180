import { describe, expect, test } from "bun:test";
import { compareMathAnswer, gradeMathAnswer } from "../../src/verifiers/math-answer.ts";
import { HOSTILE } from "./hostile-answers.ts";
import { EQUAL, NOT_EQUAL } from "./math-pairs.ts";

const box = (answer: string) => `Therefore the answer is $\\boxed{${answer}}$.`;

describe("a boxed answer that is the truth earns the reward", () => {
  test.each(EQUAL)("%s is answered by %s", async (truth, answer) => {
    expect(await gradeMathAnswer(box(answer), [truth])).toMatchObject({ reward: 1 });
  });
});

describe("signs of Unicode are read as LaTeX writes them", () => {
  const pairs: [truth: string, answer: string][] = [
    ["5", "\uFF15"],
    ["\\frac{3}{4}", "\u00BE"],
    ["3\\frac{1}{2}", "3\u00BD"],
    ["x^{12}", "x\u00B9\u00B2"],
    ["x^{-2}", "x\u207B\u00B2"],
    ["x_{1}", "x\u2081"],
    ["\\alpha+1", "\u03B1+1"],
    ["\\frac{2}{3}", "2\u20443"],
    ["12\\text{ cm}^2", "12\\ \\text{cm\u00B2}"],
  ];
  test.each(pairs)("%s is answered by %s", async (truth, answer) => {
    expect(await gradeMathAnswer(box(answer), [truth])).toMatchObject({ reward: 1 });
  });
});

describe("a boxed answer that is not the truth earns nothing", () => {
  test.each(NOT_EQUAL)("%s is not answered by %s", async (truth, answer) => {
    expect(await compareMathAnswer(box(answer), [truth])).toMatchObject({ reward: 0 });
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
    ["unclear_box", "$-\\boxed{5}$ is not \\boxed{5}", "5"],
    ["unparsable_answer", box("5 \\heartsuit"), "5"],
    ["unparsable_answer", box("5 plus seven"), "5"],
    ["unparsable_truth", box("5"), "\\int_0^1 f(x)\\,dx"],
  ];
  test.each(cases)("%s for %s against %s", async (rule, answer, truth) => {
    const { rule: given, reward } = await compareMathAnswer(answer, [truth]);
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

test.each(["5", "1,2", "\\text{no}", "x=1", "(1,2)", "\\begin{pmatrix}1\\end{pmatrix}", "\\hbar"])(
  "no verdict on %p comes from an unparsable truth",
  async (answer) => {
    const failure = { code: "truth_unreadable" };
    const truths = ["7", "\\int_0^1 f(x)\\,dx"];
    await expect(gradeMathAnswer(box(answer), truths)).rejects.toMatchObject(failure);
  },
);

test("an answer that costs too much is not blamed on the truth", async () => {
  const answer = Array(100).fill("2500!").join("+");
  expect(await gradeMathAnswer(box(answer), ["\\sqrt{2}"])).toMatchObject({
    rule: "unparsable_answer",
  });
});

test("a grade without truths is a mistake of the caller", async () => {
  await expect(gradeMathAnswer(box("5"), [])).rejects.toThrow("at least one truth");
});

describe("a formula of the question", () => {
  const earns: [problem: string, truth: string, answer: string][] = [
    ["What is larger, $3$ or $5$?", "5", "5"],
    ["Compute $2 + 3$.", "5", "5.0"],
    ["Compute $2 + 3$.", "5", "2+3=5"],
    ["Compute $\\frac{1}{4}+\\frac{1}{4}$.", "\\frac{1}{2}", "0.5"],
    ["Expand $(x+1)^2$.", "x^2+2x+1", "1+2x+x^2"],
    ["Factor $x^2-5x+6$.", "(x-2)(x-3)", "(x-3)(x-2)"],
    ["Solve $2x=8$.", "x=4", "4"],
    ["Solve $2x<8$.", "x<4", "(-\\infty,4)"],
    ["Simplify $\\sqrt{8}$.", "2\\sqrt{2}", "\\sqrt{2}\\cdot 2"],
    ["If $x+y=3$, find $2x+2y$.", "6", "2x+2y=6"],
    ["What is the area in square centimeters?", "10", "10\\text{ cm}^2"],
    ["What percent is $3$ of $6$?", "50", "50\\%"],
    ["How many wombats are there?", "12", "12\\text{ wombats}"],
    ["Solve $|x|<3$. Give an interval.", "(-3,3)", "-3<x<3"],
    ["Given $\\angle A=30^\\circ$, find $\\angle B$.", "60", "60^\\circ"],
    ["What is the polar angle?", "\\frac{\\pi}{3}", "\\frac{\\pi}{3}\\text{ rad}"],
    ["How many miles is it?", "\\frac{7}{2}", "3\\frac{1}{2}"],
    ["How fast is it, in miles per hour?", "60", "60\\text{ mph}"],
    ["How many subsets are not empty?", "1023", "2^{10}-1"],
  ];
  test.each(earns)("%s: %s is answered by %s", async (problem, truth, answer) => {
    expect(await gradeMathAnswer(box(answer), [truth], problem)).toMatchObject({ reward: 1 });
  });

  const copies: [problem: string, truth: string, answer: string][] = [
    ["Compute $2 + 3$.", "5", "2+3"],
    ["Compute $2 + 3$.", "5", "3+2"],
    ["Compute $2 + 3$.", "5", "x=2+3"],
    ["Compute $2 + 3$.", "5", "1\\cdot(2+3)"],
    ["Compute 2 + 3.", "5", "2+3"],
    ["Write $0.25$ as a fraction.", "\\frac{1}{4}", "0.25"],
    ["Reduce $\\frac{24}{36}$.", "\\frac{2}{3}", "\\frac{24}{36}"],
    ["Reduce $\\frac{24}{36}$.", "\\frac{2}{3}", "\\frac{12}{18}"],
    ["Expand $(x+1)^2$.", "x^2+2x+1", "(x+1)^2"],
    ["Expand $(x+1)^2$.", "x^2+2x+1", "(x+1)(x+1)"],
    ["Expand $(x+1)^2$.", "x^2+2x+1", "x(x+2)+1"],
    ["Factor $x^2-5x+6$.", "(x-2)(x-3)", "6-5x+x^2"],
    ["Factor $x^3-x$.", "x(x-1)(x+1)", "x(x^2-1)"],
    ["Solve $2x=8$.", "x=4", "2x=8"],
    ["Solve $2x=8$.", "x=4", "8=2x"],
    ["Solve $2x<8$.", "x<4", "2x<8"],
    ["Solve $2x<8$.", "(-\\infty,4)", "2x<8"],
    ["Simplify $\\sqrt{8}$.", "2\\sqrt{2}", "\\sqrt{8}"],
    ["Evaluate $\\log_2 8$.", "3", "\\log_2 8"],
    ["Evaluate $\\sin 30^\\circ$.", "\\frac{1}{2}", "\\cos 60^\\circ"],
    ["Write $2x-y+1=0$ as $y=mx+b$.", "y=2x+1", "2x-y+1=0"],
    ["Given $AB=2$, find $AD$.", "2", "AB=2"],
    ["Evaluate 2^10 - 24.", "1000", "2^{10}-24"],
    ["Evaluate 2^10 - 24.", "1000", "2^{10}-4!"],
    ["Let $f(x)=x^2+1$. Find $f(3)$.", "10", "f(3)=3^2+1"],
    ["What is the angle in degrees?", "60", "60\\text{ rad}"],
    ["What is the angle?", "\\frac{\\pi}{3}", "\\frac{\\pi}{3}^\\circ"],
    ["What is the value?", "15", "1\\text{ }5"],
    ["What is the value?", "1.5", "1.\\text{ }5"],
    ["How many cents is this?", "40", "\\$40"],
    ["What is the area in m²?", "10", "10\\text{ m}^3\\text{ kg}"],
    ["How many apples are there?", "50", "50\\%"],
    ["Find the coordinates of the point $P$.", "(1,2)", "1<x<2"],
    ["Find the interval of convergence.", "(1,2)", "x=1,y=2"],
  ];
  test.each(copies)("%s: %s is not answered by %s", async (problem, truth, answer) => {
    expect(await gradeMathAnswer(box(answer), [truth], problem)).toMatchObject({ reward: 0 });
  });
});

describe("the box that counts", () => {
  const messages: [reward: 0 | 1, message: string][] = [
    [1, "**\\boxed{6}**"],
    [1, "- \\boxed{6}"],
    [1, "$$x = \\boxed{6}$$"],
    [1, "\\boxed{x=\\boxed{6}}"],
    [1, "First \\boxed{5}. Then I get\n\n\\boxed{6}"],
    [1, "<think>\\boxed{5}</think> \\boxed{6}"],
    [1, "So \\boxed{6}. Let me repeat: \\boxed{6}"],
    [0, "<think>\\boxed{6}"],
    [0, "<think>\\boxed{6}</think> I do not know."],
    [0, "<reasoning>\\boxed{6}</reasoning>"],
    [0, "\\boxed{5} <think>\\boxed{6}"],
    [0, "\\boxed{5} or \\boxed{6}"],
    [0, "\\boxed{5}, alternatively \\boxed{6}"],
    [0, "\\boxed{5}. Alternatively, \\boxed{6}"],
    [0, "\\boxed{5}\n\\boxed{6}"],
    [0, "The answer is not \\boxed{6}"],
    [0, "$x=-\\boxed{6}$"],
    [0, "$\\boxed{6}^2$"],
    [0, "\\boxed{6} or 7"],
    [0, "\\boxed{5 \\boxed{6}}"],
    [1, "The answer is \\boxed{6}!"],
    [1, "=> \\boxed{6}"],
    [1, "x -> \\boxed{6}"],
    [1, "<b>\\boxed{6}</b>"],
    [1, "| \\boxed{6} |"],
    [1, "_\\boxed{6}_"],
    [1, "1. \\boxed{6}"],
    [1, "(\\boxed{6})"],
    [1, "\\boxed{6} apples"],
    [1, "\\boxed{6}."],
    [1, "\\boxed{6}, which is even"],
    [1, "$x=3$, so \\boxed{6}"],
    [1, "$\\Rightarrow \\boxed{6}$"],
    [1, "\\boxed{6} if and only if n is even"],
    [0, "\\boxed{6} (or 7)"],
    [0, "\\boxed{6} if x>0, otherwise 7"],
    [0, "\\boxed{6}, if not then 7"],
    [0, "between \\boxed{6} and 7"],
    [0, "$\\boxed{6}\\text{ or }7$"],
    [0, "$\\boxed{6}!$"],
    [0, "$\\boxed{6}x$"],
    [0, "$\\boxed{6}00$"],
    [0, "$1.\\boxed{6}$"],
    [0, "$\\boxed{6}.7$"],
    [0, "$x>\\boxed{6}$"],
    [0, "$x\\ge\\boxed{6}$"],
    [0, "$|\\boxed{6}|$"],
    [0, "$\\boxed{6},7$"],
    [0, "$7,\\boxed{6}$"],
    [0, "$(\\boxed{6},7)$"],
    [0, "$\\boxed{6}\\text{ dozen}$"],
    [0, "\\boxed{6} million"],
    [0, "$\\boxed{6}_7$"],
  ];
  test.each(messages)("earns %d in %s", async (reward, message) => {
    expect(await gradeMathAnswer(message, ["6"])).toMatchObject({ reward });
  });

  test("may be several that make one list", async () => {
    const message = "The roots are $\\boxed{1}$ and $\\boxed{2}$.";
    expect(await gradeMathAnswer(message, ["1, 2"])).toMatchObject({ reward: 1 });
  });
});

describe("a hostile answer ends soon and earns nothing", () => {
  test.each(HOSTILE)("%s", async (_name, answer) => {
    const start = performance.now();
    const problem = `What is $${answer.slice(0, 500)}$?`;
    expect(await gradeMathAnswer(box(answer), ["x+5"], problem)).toMatchObject({ reward: 0 });
    expect(performance.now() - start).toBeLessThan(2_000);
  });
});
