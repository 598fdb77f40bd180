import { expect, test } from "bun:test";
import { CHECKS } from "../../src/verifiers/instructions/checks.ts";
import { gradeInstructions, uncheckable } from "../../src/verifiers/instructions/grade.ts";

/** Each instruction of IFEval with a text that follows it and texts that do not. */
const CASES: [id: string, args: Record<string, unknown>, follows: string, ...breaks: string[]][] = [
  ["keywords:existence", { keywords: ["cat", "dog"] }, "Cats and DOGS", "cats"],
  ["keywords:frequency", { keyword: "a b", frequency: 2, relation: "at least" }, "a b, A B", "a b"],
  ["keywords:frequency", { keyword: "x", frequency: 2, relation: "less than" }, "x", "x x"],
  ["keywords:forbidden_words", { forbidden_words: ["can"] }, "scan", "I Can", "can."],
  [
    "keywords:letter_frequency",
    { letter: "e", let_frequency: 3, let_relation: "at least" },
    "eEe",
    "ee",
  ],
  ["language:response_language", { language: "ko" }, "안녕하세요 hi", "hello 안"],
  [
    "length_constraints:number_sentences",
    { num_sentences: 3, relation: "less than" },
    "Dr. A. Smith left. Why?",
    "One. Two! Three? ",
  ],
  [
    "length_constraints:number_words",
    { num_words: 3, relation: "at least" },
    "it's me",
    "two words",
  ],
  [
    "length_constraints:number_paragraphs",
    { num_paragraphs: 2 },
    "a\n***\nb\n***",
    "a\n***\n***\nb",
    "a",
  ],
  [
    "length_constraints:nth_paragraph_first_word",
    { num_paragraphs: 2, nth_paragraph: 2, first_word: "Then" },
    'a\n\n"then, b',
    "a\n\nb",
    "a",
  ],
  ["detectable_content:number_placeholders", { num_placeholders: 2 }, "[a] [b c]", "[a", "[a]"],
  ["detectable_content:postscript", { postscript_marker: "P.S." }, "x\nP. S. y", "x PS y"],
  ["detectable_content:postscript", { postscript_marker: "P.P.S" }, "x\nP.P.S y", "P.S. x"],
  [
    "detectable_format:number_bullet_lists",
    { num_bullets: 2 },
    "* a\n- b\n**c**",
    "* a",
    "* a\n* b\n* c",
  ],
  ["detectable_format:constrained_response", {}, "My answer is maybe.", "Maybe."],
  [
    "detectable_format:number_highlighted_sections",
    { num_highlights: 2 },
    "*a* **b c**",
    "*a* ** **",
  ],
  [
    "detectable_format:multiple_sections",
    { section_spliter: "SECTION", num_sections: 2 },
    "SECTION 1\na\nSECTION 2",
    "SECTION 1",
  ],
  ["detectable_format:json_format", {}, '```json\n{"a": 1}\n```', "{a: 1}", ""],
  ["detectable_format:title", {}, "<<a title>>\nx", "<a>", "<< >>"],
  ["combination:two_responses", {}, "a\n******\nb", "a\n******\na", "a", "a******b******c"],
  ["combination:repeat_prompt", { prompt_to_repeat: "Say Hi" }, "say hi\nHi", "Hi, say hi"],
  ["startend:end_checker", { end_phrase: "The end." }, 'x "the end."', "the end. x"],
  ["startend:quotation", {}, '"a\nb"', '"a', '"'],
  [
    "change_case:capital_word_frequency",
    { capital_frequency: 2, capital_relation: "at least" },
    "NO WAY jose",
    "NO way",
  ],
  ["change_case:english_capital", {}, "SHOUT 1!", "Shout", "1"],
  ["change_case:english_lowercase", {}, "quiet 1", "Quiet"],
  ["punctuation:no_comma", {}, "a; b", "a, b"],
];

test.each(CASES)("%s %j", (id, args, follows, ...breaks) => {
  expect([follows, ...breaks].map((text) => CHECKS[id]?.(text, args))).toEqual([
    true,
    ...breaks.map(() => false),
  ]);
});

test("every instruction has a case", () => {
  expect(new Set(CASES.map(([id]) => id))).toEqual(new Set(Object.keys(CHECKS)));
});

test("a message earns all, nothing, or its share", () => {
  const instructions = [
    { id: "punctuation:no_comma", args: {} },
    { id: "keywords:existence", args: { keywords: ["x"] } },
  ];
  const reward = (text: string | null, grading: "all" | "share" = "all") =>
    gradeInstructions(instructions, text, grading).reward;
  expect([reward("x"), reward("x, y"), reward("x, y", "share"), reward(null)]).toEqual([
    1, 0, 0.5, 0,
  ]);
  expect(reward("<think>a, b</think>x")).toBe(1);
  expect(gradeInstructions(instructions, "a, b", "all").details).toEqual({
    broken: ["punctuation:no_comma", "keywords:existence"],
  });
});

test("what can't be checked is known beforehand", () => {
  expect(uncheckable({ id: "punctuation:no_comma", args: {} })).toBeNull();
  expect(uncheckable({ id: "x:y", args: {} })).toContain("x:y");
  expect(uncheckable({ id: "toString", args: {} })).toContain("toString");
  expect(uncheckable({ id: "language:response_language", args: { language: "de" } })).toContain(
    "de",
  );
});

test.each(["[", "<", '"', "*", "a.", "-\n", " ", "p.", "SECTION"])(
  "a megabyte of %j takes bounded time",
  (part) => {
    const text = `${part.repeat(1_000_000 / part.length)}x`;
    const startMs = performance.now();
    for (const [id, args] of CASES) CHECKS[id]?.(text, args);
    expect(performance.now() - startMs).toBeLessThan(10_000);
  },
);
