import { expect, test } from "bun:test";
import {
  checkedLanguage,
  isEnglish,
  isInLanguage,
  languageShares,
} from "../../src/verifiers/instructions/language.ts";
import { IFEVAL_LANGUAGES, NEIGHBOURS } from "./languages.ts";

const CODES = Object.keys(IFEVAL_LANGUAGES);
const whole = (code: string) => (IFEVAL_LANGUAGES[code] ?? []).join(" ");

test("an answer of a few sentences is in its language, and in no other that IFEval asks for", async () => {
  for (const code of CODES) {
    const told = await Promise.all(CODES.map((asked) => isInLanguage(whole(code), asked)));
    expect({ code, passes: CODES.filter((_, index) => told[index]) }).toEqual({
      code,
      passes: [code],
    });
  }
});

test("single sentences are told, all of ninety", async () => {
  const wrong: string[] = [];
  for (const [code, sentences] of Object.entries(IFEVAL_LANGUAGES)) {
    for (const sentence of sentences) {
      if (!(await isInLanguage(sentence, code))) wrong.push(`${code}: ${sentence}`);
    }
  }
  expect(wrong).toEqual([]);
});

test("a neighbour of a language does not pass for it", async () => {
  const passing: string[] = [];
  for (const [name, text] of Object.entries(NEIGHBOURS)) {
    for (const code of CODES)
      if (await isInLanguage(text, code)) passing.push(`${name} as ${code}`);
  }
  expect(passing).toEqual([]);
});

test("a second language is found wherever it stands; names, code and links are none", async () => {
  const long = whole("pt").repeat(3);
  const foreign = whole("en").repeat(2);
  for (const text of [long + foreign, foreign + long, whole("pt") + foreign + whole("pt")]) {
    expect(await isInLanguage(text, "pt")).toBe(false);
  }
  const code = `\`\`\`python\nfor word in the_list_of_words: print("the next word is", word)\n\`\`\`\n`;
  const link = "https://example.org/the-whole-story-of-the-english-language ";
  expect(await isInLanguage(long + code.repeat(9) + link.repeat(9), "pt")).toBe(true);
  const names = "Machine Learning, GitHub, New York Times. ";
  expect(await isInLanguage(whole("ru") + names + whole("ru"), "ru")).toBe(true);
});

test("case, Markdown and where a text is cut change nothing", async () => {
  for (const code of ["es", "pt", "de", "ru", "uk", "bg", "fi", "vi"]) {
    const text = whole(code);
    const forms = [text.toUpperCase(), text.toLowerCase(), `# **${text}**\n\n* ${text}`];
    for (const form of forms) expect([code, await isInLanguage(form, code)]).toEqual([code, true]);
    for (let cut = 60; cut < text.length; cut += 11) {
      const part = text.slice(0, cut);
      expect([part, await isInLanguage(part, code)]).toEqual([part, true]);
    }
  }
});

test("a text without words is in no language, and equal texts get equal shares", async () => {
  for (const text of ["", "42", "!?", "```\ncode\n```"]) {
    expect(await isInLanguage(text, "en")).toBe(false);
  }
  expect(await languageShares(whole("sw"))).toEqual([["sw", 1]]);
  expect(await languageShares(whole("ne"))).toEqual(await languageShares(whole("ne")));
});

test("codes mean languages whatever their case and region; others can't be asked for", () => {
  expect(["pt-BR", "ZH_cn", "nb", "id", "fil", "sw"].map(checkedLanguage)).toEqual([
    ...["pt", "zh", "no", "ms", "tl", "sw"],
  ]);
  expect(["x", "tlh", "", null, "toString", "ku"].map(checkedLanguage)).toEqual(
    Array(6).fill(null),
  );
  expect(CODES.map(checkedLanguage)).toEqual(CODES);
});

test("capitals and small letters are asked for in English", async () => {
  expect(await isEnglish(whole("en").toUpperCase())).toBe(true);
  expect(await isEnglish(whole("es").toLowerCase())).toBe(false);
  expect(await isEnglish("ДА")).toBe(false);
  expect(await isEnglish("OK!")).toBe(true);
});

test("a long text of any script takes bounded time", async () => {
  for (const text of ["a ", "ж", "न ", "字", "ا ", "\u0301"]) {
    const startMs = performance.now();
    await languageShares(text.repeat(100_000 / text.length));
    expect(performance.now() - startMs).toBeLessThan(10_000);
  }
});
