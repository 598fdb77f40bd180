import { describe, expect, test } from "bun:test";
import { type GradingMode, gradeChoice } from "../../src/verifiers/multiple-choice.ts";
import { drawn, type Random } from "../support/drawn.ts";

const OPTIONS = [
  { letter: "A", text: "A cat or dog" },
  { letter: "B", text: "Blue whales" },
  { letter: "C", text: "Blue" },
  { letter: "D", text: "4" },
];

function chosen(message: string, mode: GradingMode): string | null {
  for (const { letter } of OPTIONS) {
    const question = { options: OPTIONS, expected: letter, mode, outputRegexes: [] };
    const { reward, rule } = gradeChoice(question, message);
    if (reward === 1) return letter;
    if (rule !== "wrong_choice") return null;
  }
  return null;
}

const COLON: GradingMode[] = ["lenient_answer_colon", "lenient_answer_colon_md", "gpqa"];

describe("an answer chooses one option", () => {
  test.each<[answer: string, letter: string]>([
    ["Answer: B", "B"],
    ["Answer：B", "B"],
    ["**Answer:**\n**B**", "B"],
    ["**Answer**: B", "B"],
    ["Answer:\n\nB", "B"],
    ["Answer:\n> B", "B"],
    ["Answer:\n- **B**", "B"],
    ["The final answer is: B", "B"],
    ["Answer: I think B", "B"],
    ["Answer: {\\bf B}", "B"],
    ["## Final Answer\n\n(B)", "B"],
    ["Answer: **(B)** Blue whales", "B"],
    ["Answer: (b)", "B"],
    ["Answer: [B].", "B"],
    ["Answer: B.", "B"],
    ["Answer: $\\boldsymbol{B}$", "B"],
    ["Answer: $\\text{(B)}$", "B"],
    ["Answer: \\(\\mathbf{B}\\)", "B"],
    ["Answer: Ｂ", "B"],
    ["Answer: ب", "B"],
    ["Answer: option B", "B"],
    ["Answer: The correct answer is B", "B"],
    ["Answer: B is correct", "B"],
    ["Answer: B because whales are large", "B"],
    ["Answer: B, because A is wrong", "B"],
    ["Answer: B, not A", "B"],
    ["Answer: B rather than A or C", "B"],
    ["Answer: B. A whale is no cat.", "B"],
    ["Answer: B) Blue whales", "B"],
    ["Answer: B Blue whales", "B"],
    ["Answer: blue  whales.", "B"],
    ["Answer: A cat or dog", "A"],
    ["Answer: A. A cat or dog", "A"],
    ["Answer: (A) a cat or dog", "A"],
    ["Answer: D. 4", "D"],
    ["Answer: D, as 3 + 1 = 4", "D"],
    ["Answer: 4", "D"],
    ["Answer: <b>B</b>", "B"],
    ['Answer: "B"', "B"],
  ])("%j", (answer, letter) => {
    expect(COLON.map((mode) => chosen(answer, mode))).toEqual(COLON.map(() => letter));
  });
});

describe("an answer chooses none, or more than one", () => {
  test.each([
    ...[
      "Answer: A, B",
      "Answer: A/B",
      "Answer: A or B",
      "Answer: A and C",
      "Answer: AB",
      "Answer: A B",
    ],
    ...[
      "Answer: A & B",
      "Answer: A+B",
      "Answer: (A), (B)",
      "Answer: (A)(B)",
      "Answer: a, b",
      "Answer: a/b",
    ],
    ...[
      "Answer: not A",
      "Answer: A is wrong",
      "Answer: A isn't right",
      "Answer: A - no",
      "Answer: neither A nor B",
    ],
    ...[
      "Answer: A.\nOr B.",
      "Answer: A\nBut B is right",
      "Answer: A, alternatively Blue whales",
      "Answer: A, maybe B",
      "Answer: A (or B)",
      "Answer: A, but B is possible too",
    ],
    ...[
      "Answer: A. Wait, it is B",
      "Answer: A, or the second one",
      "Answer: A, since B or C may be",
    ],
    ...[
      "Answer: A because maybe B",
      "Answer: **A**, **B**",
      "Answer: $A, B$",
      "Answer: \\text{A} or \\text{B}",
    ],
    ...[
      "Answer: A|B",
      "Answer: A; B",
      "Answer: A\u200b, B",
      "Answer: E",
      "Answer: A, E",
      "Answer: Z",
      "Answer:",
    ],
    ...[
      "Answer: B) Blue",
      "Answer: C. Blue whales",
      "Answer: Blue whales or 4",
      "Answer: Blue or 4",
      "Answer: whales",
    ],
    ...[
      "Answer: A or B or C or D",
      "Answer: B: Blue whales / 4",
      "Answer: Any of A, B",
      "Answer: Both A and B",
    ],
    ...[
      "Answer: A, actually not",
      "The answer is B",
      "B",
      "Answer: option A or option B",
      "Answer: A ou B, C",
    ],
  ])("%j", (answer) => {
    expect(COLON.map((mode) => chosen(answer, mode))).toEqual(COLON.map(() => null));
  });
});

describe("boxes", () => {
  test.each<[GradingMode, string, string | null]>([
    ["lenient_boxed", "\\boxed{\\text{\\textbf{B}}}", "B"],
    ["lenient_boxed", "\\boxed{b}", "B"],
    ["lenient_boxed", "\\boxed{\\textbf{(B)}~\\text{Blue whales}}", "B"],
    ["lenient_boxed", "\\boxed{It is the blue whales}", "B"],
    ["lenient_boxed", "\\boxed{A cat or dog}", "A"],
    ["lenient_boxed", "\\boxed{not Blue whales}", null],
    ["lenient_boxed", "\\boxed{Blue whales or Blue}", null],
    ["lenient_boxed", "\\boxed{A, B}", null],
    ["lenient_boxed", "\\boxed{A} or \\boxed{B}", null],
    ["lenient_boxed", "\\boxed{A}, \\boxed{B}", null],
    ["lenient_boxed", "$\\boxed{A}$ $\\boxed{B}$", null],
    ["lenient_boxed", "\\boxed{A}, or \\boxed{B}", null],
    ["lenient_boxed", "\\boxed{A} or B", null],
    ["lenient_boxed", "$\\boxed{A}$ (or $B$)", null],
    ["lenient_boxed", "\\boxed{A}. That was wrong, so \\boxed{B}", "B"],
    ["lenient_boxed", "\\boxed{B} or \\boxed{B}", "B"],
    ["strict_single_letter_boxed", "\\boxed{B) Blue whales}", "B"],
    ["strict_single_letter_boxed", "\\boxed{\\mathbf{B}}", "B"],
    ["strict_single_letter_boxed", "\\boxed{A cat or dog}", null],
    ["strict_single_letter_boxed", "\\boxed{A/B}", null],
    ["gpqa", "\\boxed{A or B}\nAnswer: A", null],
    ["gpqa", "\\boxed{AB}\nAnswer: B", "B"],
  ])("%s: %s", (mode, message, letter) => {
    expect(chosen(message, mode)).toBe(letter);
  });
});

const LABELS: ((letter: string) => string)[] = [
  ...[
    (l: string) => l,
    (l: string) => `(${l})`,
    (l: string) => `[${l}]`,
    (l: string) => `**${l}**`,
  ],
  ...[(l: string) => `*${l}*`, (l: string) => `\\text{${l}}`, (l: string) => `$\\mathrm{(${l})}$`],
  ...[(l: string) => `\\textbf{${l}}`, (l: string) => `option ${l}`, (l: string) => `"${l}"`],
  ...[(l: string) => `\`${l}\``, (l: string) => l.normalize("NFKC"), (l: string) => `${l})`],
];
const LEADS = ["", " ", "\n", "\n\n", "** ", " The answer is ", " My final choice: ", " Option "];
const ENDS = ["", ".", "!", " ", "\n", "**", "\n\nThat is all.", "\n\nI hope that helps."];
const REASONS = [
  ...[
    " because it is so",
    ", since the others fail",
    ". It is the largest.",
    " is correct",
    ": the best of them",
  ],
  ...[" (as shown above)", ", not the others", " - as 2 + 2 says"],
];
const JOINS = [
  ...[
    ", ",
    "/",
    " / ",
    " or ",
    " and ",
    " & ",
    "; ",
    ",",
    " + ",
    " and/or ",
    ", or ",
    " or maybe ",
    " | ",
    "\n or ",
    " ",
  ],
  ...[", possibly ", " (or ", ", alternatively "],
];

const place = (random: Random, answer: string): [GradingMode, string] =>
  random.chance(0.4)
    ? [
        random.pick(["lenient_boxed", "gpqa"] as const),
        `So \\boxed{${answer.trim().split("\n\n")[0]}}`,
      ]
    : [
        random.pick(COLON),
        `I think.\n${random.pick(["Answer:", "**Answer:", "Final answer:", "answer :"])}${answer}`,
      ];

test("one letter is chosen however it is set, led to, ended and reasoned", async () => {
  await drawn(3000, (random) => {
    const { letter } = random.pick(OPTIONS);
    const label = random.pick(LABELS)(letter);
    const tail = random.pick([...ENDS, ...REASONS]);
    const [mode, message] = place(random, random.pick(LEADS) + label + tail);
    expect([message, mode, chosen(message, mode)]).toEqual([message, mode, letter]);
  });
});

test("two letters are no choice, however they are set and joined", async () => {
  await drawn(3000, (random) => {
    const first = random.pick(OPTIONS).letter;
    const second = random.pick(OPTIONS.filter(({ letter }) => letter !== first)).letter;
    const set = random.pick(LABELS);
    const other = random.pick([set, random.pick(LABELS)]);
    const answer = set(first) + random.pick(JOINS) + other(second) + random.pick([...ENDS, ")"]);
    const [mode, message] = place(random, random.pick(LEADS) + answer);
    expect([message, mode, chosen(message, mode)]).toEqual([message, mode, null]);
  });
});

test("an option's text in the place of its letter chooses it, and two texts choose none", async () => {
  await drawn(1000, (random) => {
    const { letter, text } = random.pick(OPTIONS);
    const form = random.pick([
      text,
      text.toUpperCase(),
      `**${text}**`,
      `\\text{${text}}`,
      `${text}.`,
    ]);
    const [mode, message] = place(random, ` ${form}`);
    if (mode !== "gpqa") expect([message, chosen(message, mode)]).toEqual([message, letter]);
    const other = random.pick(OPTIONS.filter((option) => option.letter !== letter));
    const [mode2, two] = place(
      random,
      ` ${text}${random.pick([" or ", " / ", ", or "])}${other.text}`,
    );
    expect([two, chosen(two, mode2)]).toEqual([two, null]);
  });
});
