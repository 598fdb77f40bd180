import { expect, test } from "bun:test";
import { CHECKS } from "../../src/verifiers/instructions/checks.ts";
import { gradeInstructions, uncheckable } from "../../src/verifiers/instructions/grade.ts";

/** Each instruction with a text that follows it and texts that do not. */
const CASES: [id: string, args: Record<string, unknown>, follows: string, ...breaks: string[]][] = [
  ["copy:copy", { prompt_to_repeat: "Say it." }, " say it.\n", "Say it. Yes."],
  ["copy:copying_simple", { prompt_to_repeat: "Say it." }, "Say it.", "Say"],
  ["copy:copying_multiple", { prompt_to_repeat: "a", N: 2 }, "a\n******\nA", "a", "a ****** b"],
  ["new:copy_span_idx", { prompt_to_repeat: "abcdef", n_start: 1, n_end: 3 }, "bc", "abc"],
  [
    "copy:repeat_phrase",
    { phrase: "we all like tea", small_n: 2 },
    "we all drink tea, we all love tea",
    "we all like tea, we all love tea",
    "we all love tea",
    "we few love tea, we all love tea",
  ],
  ["keywords:word_once", { keyword: "cat" }, "A Cat.", "a cat, a cat", "a dog"],
  [
    "keywords:word_count_different_numbers",
    { keyword: "cat", frequency: 2, relation: "less than" },
    "cat",
    "cat cat",
  ],
  ["keywords:exclude_word_harder", { keyword: "cat" }, "cats", "a cat sat"],
  ["keywords:no_adjacent_consecutive", {}, "all cats eat", "All birds"],
  ["keywords:palindrome", {}, "our level", "our word"],
  [
    "keywords:keyword_specific_position",
    { keyword: "it", n: 2, m: 3 },
    "Yes! So, it is.",
    "It is. It is",
  ],
  ["keywords:start_end", {}, "Yes, I say yes", "Yes I say no", "yes"],
  ["letters:letter_counting", { N: 3, relation: "less than" }, "a 1 b", "abc"],
  [
    "letters:letter_counting2",
    { letter: "e", let_frequency: 2, let_relation: "at least" },
    "eE",
    "e",
  ],
  ["count:lowercase_counting", { N: 1 }, "One Two three", "one two"],
  ["count:count_unique", {}, "Each word once.", "this, this", "a, b, c"],
  ["count:count_increment_word", { keyword1: "a1", keyword2: "b2" }, "a1 b2 b2", "a1 b2", "b2 b2"],
  [
    "count:counting_composition",
    { n_sent: 1, n_words: 3 },
    "Go on.\n***\nGo up.\n***\nGo out.",
    "Go on.\n***\nGo up.",
    "Go on. No.\n***\nGo up.\n***\nGo out.",
    "Go on now.\n***\nGo up.\n***\nGo out.",
  ],
  ["paragraphs:paragraphs", {}, "a\n***\nb", "a", "a\n***\nb\n***\nc"],
  ["paragraphs:paragraphs2", {}, "a\n\nb", "a\nb", "a\n\nb\n\nc"],
  ["first_word:first_word_answer", { first_word: "well" }, "Well it is", "It is well"],
  ["first_word:first_word_sent", { first_word: "well" }, "Well yes. Well no.", "Well yes. No."],
  ["last_word:last_word_answer", { last_word: "end" }, "It is the End.", "the end is near"],
  ["last_word:last_word_sent", { last_word: "end" }, "The end! My end.", "The end. It is"],
  ["detectable_format:sentence_hyphens", {}, "It is.-It was.", "It is. - It was."],
  ["detectable_format:square_brackets", {}, "[all] [words]", "[all] words"],
  ["detectable_format:bigram_wrapping", {}, "<<two words>> <<and two>> one", "two <<words>>"],
  ["punctuation:punctuation_dot", {}, "no!", "yes."],
  ["punctuation:punctuation_exclamation", {}, "no.", "yes!"],
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
  [
    "language:response_language",
    { language: "pt" },
    "Não sei onde ficam as chaves da minha casa.",
    "No sé dónde están las llaves de mi casa.",
    "42",
  ],
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

test.each(CASES)("%s %j", async (id, args, follows, ...breaks) => {
  const found = await Promise.all([follows, ...breaks].map((text) => CHECKS[id]?.(text, args)));
  expect(found).toEqual([true, ...breaks.map(() => false)]);
});

test("a verdict on a language says which ones the text has", async () => {
  const instructions = [{ id: "language:response_language", args: { language: "pt" } }];
  const verdict = await gradeInstructions(instructions, "No sé dónde están mis llaves.", "all");
  expect(verdict).toMatchObject({ reward: 0, details: { languages: { es: 1 } } });
});

test("every instruction has a case", () => {
  expect(new Set(CASES.map(([id]) => id))).toEqual(new Set(Object.keys(CHECKS)));
});

test("a message earns all, nothing, or its share", async () => {
  const instructions = [
    { id: "punctuation:no_comma", args: {} },
    { id: "keywords:existence", args: { keywords: ["x"] } },
  ];
  const reward = async (text: string | null, grading: "all" | "share" = "all") =>
    (await gradeInstructions(instructions, text, grading)).reward;
  expect(await Promise.all([reward("x"), reward("x, y"), reward("x, y", "share")])).toEqual([
    1, 0, 0.5,
  ]);
  expect([await reward(null), await reward("<think>a, b</think>x")]).toEqual([0, 1]);
  expect((await gradeInstructions(instructions, "a, b", "all")).details).toEqual({
    broken: ["punctuation:no_comma", "keywords:existence"],
  });
});

test("what can't be checked is known beforehand", () => {
  expect(uncheckable({ id: "punctuation:no_comma", args: {} })).toBeNull();
  expect(uncheckable({ id: "x:y", args: {} })).toContain("x:y");
  expect(uncheckable({ id: "toString", args: {} })).toContain("toString");
  const asks = (language: unknown) =>
    uncheckable({ id: "language:response_language", args: { language } });
  expect([asks("de"), asks("pt-BR")]).toEqual([null, null]);
  expect([asks("tlh"), asks(undefined)]).toEqual([
    "texts in the language tlh can't be told from others",
    expect.stringContaining("undefined"),
  ]);
});

test.each(["[", "<", '"', "*", "a.", "-\n", " ", "p.", "SECTION", "we "])(
  "a megabyte of %j takes bounded time",
  async (part) => {
    const text = `${part.repeat(1_000_000 / part.length)}x`;
    const startMs = performance.now();
    for (const [id, args] of CASES) await CHECKS[id]?.(text, args);
    expect(performance.now() - startMs).toBeLessThan(10_000);
  },
);
