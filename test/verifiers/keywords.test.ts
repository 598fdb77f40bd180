import { describe, expect, test } from "bun:test";
import { CHECKS } from "../../src/verifiers/instructions/checks.ts";
import { hasWord, isWord, occurrences } from "../../src/verifiers/instructions/keywords.ts";
import { drawn } from "../support/drawn.ts";

describe("a word is found by itself, whatever it begins or ends with", () => {
  test.each<[word: string, found: string[], absent: string[]]>([
    [
      "can",
      ["I CAN.", "can't", "(can)", "c\u00adan", "c\u200ban", "ｃａｎ"],
      ["scan", "canned", "canción"],
    ],
    ["c++", ["I like C++.", "c++"], ["c+", "c"]],
    ["#tag", ["a #tag here", "x#tag"], ["tag"]],
    ["café", ["le CAFÉ noir", "cafe\u0301", "café"], ["cafés", "cafe"]],
    ["été", ["l'été", "ÉTÉ"], ["étés", "répété"]],
    ["élan", ["son élan"], ["vélan"]],
    ["straße", ["STRASSE", "die Straße"], ["straßen"]],
    ["don't", ["I don’t know", "DON'T"], ["dont"]],
    ["New York", ["new  york", "New\nYork", "New\u00a0York"], ["New Yorker", "newyork"]],
    ["да", ["Да, конечно", "ну да"], ["дата", "года"]],
    ["σοφός", ["ΣΟΦΌΣ", "ο σοφός"], ["σοφόςα"]],
    ["istanbul", ["İSTANBUL", "Istanbul"], ["istanbullu"]],
    ["犬", ["子犬です", "犬"], ["猫"]],
    ["หมา", ["ฉันมีหมาสองตัว"], ["แมว"]],
    ["कर", ["वह कर रहा है"], ["करना", "करो"]],
    ["سلام", ["سلام!"], ["سلامت"]],
    ["$5", ["for $5.", "$5"], ["$50", "5"]],
    ["a.b", ["a.b"], ["axb"]],
    ["[x]", ["an [x]"], ["x"]],
  ])("%j", (word, found, absent) => {
    expect([...found, ...absent].map((text) => hasWord(text, word))).toEqual([
      ...found.map(() => true),
      ...absent.map(() => false),
    ]);
  });
});

test("a word among any others is found, and never where letters touch it", async () => {
  const words = [
    "c++",
    "can",
    "été",
    "#x",
    "да",
    "no!",
    "l'eau",
    "naïve",
    "€5",
    "ß",
    "पानी",
    "AT&T",
  ];
  const signs = [" ", ". ", ", ", "\n", " (", ") ", "-", '"', "…", "。"];
  await drawn(2000, (random) => {
    const word = random.pick(words);
    const form = random.pick([word, word.toUpperCase(), word.normalize("NFD")]);
    const before = `${random.pick(["some", "étage", "дом"])}${random.pick(signs)}`;
    const after = `${random.pick(signs)}${random.pick(["more", "étage", "нет"])}`;
    expect([before + form + after, hasWord(before + form + after, word)]).toEqual([
      before + form + after,
      true,
    ]);
    if (!/^[\p{L}].*[\p{L}\p{M}]$/u.test(word) && word.length > 1) return;
    const touched = random.pick([`é${form}${after}`, `${before}${form}ж`, `${before}x${form}`]);
    expect([touched, hasWord(touched, word)]).toEqual([touched, false]);
  });
});

test("a token is a word but for the signs around it", () => {
  expect(isWord('"c++".', "c++")).toBe(true);
  expect(isWord("c", "c++")).toBe(false);
  expect(isWord("c+++", "c++")).toBe(true);
  expect(isWord("**L’eau**,", "l'eau")).toBe(true);
  expect(isWord("ended", "end")).toBe(false);
  expect(isWord("", "end")).toBe(false);
});

test("occurrences are counted without case, also inside of words", () => {
  expect(occurrences("Cat, CATalogue", "cat")).toBe(2);
  expect(occurrences("ÉTÉ été e\u0301te\u0301", "été")).toBe(3);
  expect(occurrences("x", "")).toBe(0);
});

describe("instructions hold for words with signs, accents and other scripts", () => {
  test.each<[id: string, args: Record<string, unknown>, follows: string, breaks: string]>([
    ["keywords:forbidden_words", { forbidden_words: ["c++"] }, "I like C.", "I like C++."],
    ["keywords:forbidden_words", { forbidden_words: ["été"] }, "répété", "Cet été."],
    ["keywords:exclude_word_harder", { keyword: "cat" }, "cats", "A cat."],
    ["keywords:existence", { keywords: ["naïve"] }, "NAI\u0308VE", "naive"],
    ["last_word:last_word_answer", { last_word: "c++" }, "I like C++.", "I like C."],
    ["first_word:first_word_answer", { first_word: "être" }, "ÊTRE ou non", "Etre ou non"],
    [
      "length_constraints:nth_paragraph_first_word",
      { num_paragraphs: 1, nth_paragraph: 1, first_word: "l'eau" },
      "L’eau est froide.",
      "L'air est froid.",
    ],
    ["keywords:keyword_specific_position", { keyword: "c++", n: 1, m: 2 }, "I c++ it.", "I c it."],
    ["count:lowercase_counting", { N: 1 }, "Été été", "Été été là"],
    [
      "letters:letter_counting2",
      { letter: "é", let_frequency: 2, let_relation: "at least" },
      "Été",
      "ete",
    ],
    [
      "change_case:english_capital",
      {},
      "I WALK TO THE OLD LIBRARY EVERY SINGLE MORNING",
      "CAMINO CADA MAÑANA A LA BIBLIOTECA DE MI PEQUEÑA CIUDAD",
    ],
    ["change_case:english_lowercase", {}, "yes, it is", "да, это так"],
  ])("%s %j", async (id, args, follows, breaks) => {
    const check = CHECKS[id];
    expect([await check?.(follows, args), await check?.(breaks, args)]).toEqual([true, false]);
  });
});
