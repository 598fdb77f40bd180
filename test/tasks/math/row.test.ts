import { describe, expect, test } from "bun:test";
import { parseMathRow } from "../../../src/tasks/math/row.ts";
import { failureOf } from "../../support/failure.ts";

const PROMPT = [{ role: "user", content: "What is 1+1?" }];

function truthsOf(ground_truth: unknown): string[] {
  return parseMathRow({ prompt: PROMPT, reward_model: { ground_truth } }).truths;
}

function problemOf(...contents: string[]): string {
  const prompt = contents.map((content) => ({ role: "user", content }));
  return parseMathRow({ prompt, reward_model: { ground_truth: "2" } }).problem;
}

describe("a row of DeepScaleR", () => {
  test("is read as published, whatever else it holds", () => {
    const row = {
      data_source: "deepscaler",
      prompt: PROMPT,
      ability: "math",
      reward_model: { style: "rule", ground_truth: "2" },
      extra_info: null,
    };
    expect(parseMathRow(row)).toEqual({ problem: "What is 1+1?", truths: ["2"] });
  });

  test("is read where its nested values are JSON text", () => {
    const row = {
      prompt: JSON.stringify(PROMPT),
      reward_model: ` ${JSON.stringify({ ground_truth: "2" })}`,
    };
    expect(parseMathRow(row)).toEqual({ problem: "What is 1+1?", truths: ["2"] });
  });

  test("has its messages joined into one problem, with or without roles", () => {
    const prompt = [{ role: "system", content: "Be brief." }, { content: "What is 1+1?" }];
    const { problem } = parseMathRow({ prompt, reward_model: { ground_truth: "2" } });
    expect(problem).toBe("Be brief.\n\nWhat is 1+1?");
  });
});

describe("a row as it is published, before any preparation", () => {
  const problem = "What is 1+1?";
  test.each([
    ["DeepScaleR and AIME", { problem, answer: "2", solution: "1+1=2." }, ["2"]],
    ["AMC, with numbers", { problem, answer: 2.0 }, ["2"]],
    ["Olympiad Bench, with a list", { problem, answer: ["$2$"], unit: null }, ["$2$"]],
    ["GSM8K", { question: problem, answer: "1+1=<<1+1=2>>2\n#### 2" }, ["2"]],
    ["GSM8K beside others", { problem, answer: null, solution: "One and one.\n#### 2 \n" }, ["2"]],
    ["MATH", { problem, solution: "It is $\\boxed{\\frac{4}{2}}$." }, ["\\frac{4}{2}"]],
    [
      "NeMo Gym",
      { question: "?", expected_answer: "2", responses_create_params: { input: problem } },
      ["2"],
    ],
    [
      "NeMo Gym, in parts",
      {
        expected_answer: "2",
        responses_create_params: {
          input: [{ role: "user", content: [{ type: "input_text", text: problem }] }],
        },
      },
      ["2"],
    ],
  ])("of %s", (_set, row, truths) => {
    expect(parseMathRow(row)).toEqual({ problem, truths });
  });

  test("without what it asks or without an answer names both places where it could be", async () => {
    const asks = await failureOf(() => parseMathRow({ answer: "2" }));
    expect([asks.field, asks.message]).toEqual([
      "instance.prompt",
      "instance.prompt: is missing, and so are problem and question",
    ]);
    const answer = await failureOf(() => parseMathRow({ problem, solution: "Clearly." }));
    expect([answer.field, answer.message]).toEqual([
      "instance.reward_model",
      "instance.reward_model: is missing, and so are answer, expected_answer and a solution that ends with the answer",
    ]);
  });
});

describe("the ground truth", () => {
  test.each([
    ["2", ["2"]],
    [2, ["2"]],
    [-0.5, ["-0.5"]],
    [
      ["\\frac12", 0.5],
      ["\\frac12", "0.5"],
    ],
    ["[1,2)", ["[1,2)"]],
    ["[1, 2]", ["[1, 2]"]],
    ["{1, 2}", ["{1, 2}"]],
    ["[1, 2]", ["[1, 2]"]],
  ])("%p means the accepted answers %p", (given, truths) => {
    expect(truthsOf(given)).toEqual(truths);
  });
});

describe("the suffix that datasets append for models without tools", () => {
  const SUFFIX = "Let's think step by step and output the final answer within \\boxed{}.";

  test("is left out of the problem", () => {
    expect(problemOf(`What is 1+1? ${SUFFIX}`)).toBe("What is 1+1?");
    expect(problemOf(`What is 1+1?\n\n${SUFFIX}\n`)).toBe("What is 1+1?");
    expect(problemOf(`What is 1+1? ${SUFFIX.slice(0, -1)}`)).toBe("What is 1+1?");
    expect(problemOf("What is 1+1?", SUFFIX)).toBe("What is 1+1?");
  });

  test("of GSM8K and DAPO is left out, too", () => {
    const gsm8k = 'Let\'s think step by step and output the final answer after "####".';
    const dapo =
      "Solve the following math problem step by step. The last line of your response should be of the form Answer: $Answer (without quotes) where $Answer is the answer to the problem.";
    const end = 'Remember to put your answer on its own line after "Answer:".';
    expect(problemOf(`What is 1+1? ${gsm8k}`)).toBe("What is 1+1?");
    expect(problemOf(`${dapo}\n\nWhat is 1+1?\n\n${end}`)).toBe("What is 1+1?");
  });

  test("stays where it is not the end, and so does anything that only resembles it", () => {
    const kept = [`${SUFFIX} What is 1+1?`, "Let's think step by step. What is \\boxed{}?"];
    expect(kept.map((text) => problemOf(text))).toEqual(kept);
  });
});

test("a long row of blanks costs time that grows with its length only", () => {
  const blanks = " ".repeat(300_000);
  const began = process.cpuUsage();
  const { problem } = parseMathRow({
    problem: `a${blanks}b`,
    answer: `#### ${blanks}7`,
  });
  const { user } = process.cpuUsage(began);
  expect(problem).toEndWith(" b");
  expect(user / 1e6).toBeLessThan(2);
});

describe("a row that is wrong is refused at its field", () => {
  const truth = { reward_model: { ground_truth: "2" } };
  const cases: [row: Record<string, unknown>, field: string | RegExp][] = [
    [{ ...truth }, "instance.prompt"],
    [{ ...truth, prompt: null }, "instance.prompt"],
    [{ ...truth, prompt: "" }, "instance.prompt"],
    [{ ...truth, prompt: "{}" }, "instance.prompt"],
    [{ ...truth, prompt: [] }, "instance.prompt"],
    [{ ...truth, prompt: [{ role: "user", content: null }] }, /^instance\.prompt.*0.*content$/],
    [{ prompt: PROMPT }, "instance.reward_model"],
    [{ prompt: PROMPT, reward_model: null }, "instance.reward_model"],
    [{ prompt: PROMPT, reward_model: "{not JSON" }, "instance.reward_model"],
    [{ prompt: PROMPT, reward_model: "2" }, "instance.reward_model"],
    [{ prompt: PROMPT, reward_model: {} }, "instance.reward_model.ground_truth"],
    ...[null, true, [], [null], ["2", null], {}].map(
      (ground_truth): [Record<string, unknown>, string] => [
        { prompt: PROMPT, reward_model: { ground_truth } },
        "instance.reward_model.ground_truth",
      ],
    ),
  ];
  test.each(cases)("%j", async (row, field) => {
    const refused = await failureOf(() => parseMathRow(row));
    expect(refused.code).toBe("invalid_field");
    expect(refused.field).toMatch(typeof field === "string" ? new RegExp(`^${field}$`) : field);
    expect(refused.message).toStartWith(`${refused.field}: `);
  });
});

describe("a truth that can't be compared", () => {
  const unreadable: [truth: string, why: string][] = [
    ["\\int_0^1 f(x)\\,dx", "is not an arithmetic expression"],
    ["\\begin{cases}x & x>0\\\\ -x & x\\le 0\\end{cases}", "is not an arithmetic expression"],
    ["x \\equiv 7 \\pmod{10}", "is not an arithmetic expression"],
    ["1,2,\\ldots,n", "is not an arithmetic expression"],
    ["10^{10^{10}}", "has no value"],
    ["\\text{increasing on }(0,\\infty)", "mixes words and formulas"],
    ["The function has no maximum on its domain", "is a sentence"],
    ["", "is empty"],
    ["$ $", "is empty"],
  ];
  test.each(unreadable)("%p is refused with its field: %s", async (truth, why) => {
    const failure = await failureOf(() => truthsOf(truth));
    expect(failure).toMatchObject({
      code: "invalid_field",
      field: "instance.reward_model.ground_truth",
    });
    expect(failure.message).toContain(why);
  });

  test("is refused where it is longer than any answer", async () => {
    const failure = await failureOf(() => truthsOf("1".repeat(2_001)));
    expect(failure.message).toContain("2001 characters");
  });

  test("is refused beside one that can", async () => {
    const failure = await failureOf(() => truthsOf(["5", "\\int f"]));
    expect(failure).toMatchObject({ code: "invalid_field" });
  });

  test.each(["expected_answer", "answer"])("is refused in %s", async (field) => {
    const row = { prompt: PROMPT, [field]: "\\int f" };
    expect(await failureOf(() => parseMathRow(row))).toMatchObject({ field: `instance.${field}` });
  });

  const readable = String.raw`
    5 | 2516_8 | \sqrt{-4} | \angle ABC=30^\circ | P(A)=1/2 | f^{-1}(x)=\frac{x-1}{2} | \mathbb{N} | 9:00
    \text{No solution} | Evelyn | \{x \mid x>1\} | \operatorname{arctan} 2 | y=C_1e^x+C_2e^{-x} | \pm 3
    x=\frac{\pi}{4}+k\pi, k\in\mathbb{Z} | 6.02\cdot10^{23}\text{ mol}^{-1} | 4:30\text{ p.m.} | \sum_{k=1}^{9} k
  `;
  test.each(readable.split(/[|\n]/).flatMap((truth) => truth.trim() || []))("%p is none", (truth) =>
    expect(truthsOf(truth)).toEqual([truth]),
  );
});
