import { type Check, number, related, separated, string } from "./arguments.ts";
import { hasWord, isWord, occurrences } from "./keywords.ts";
import { letterCount, sentences, tokens } from "./text.ts";

const copies: Check = (text, { prompt_to_repeat }) => same(text, string(prompt_to_repeat));

/**
 * The instructions that IFEval's training sets have beyond its own (IF-RLVR, whose rows NeMo Gym's
 * `instruction_following` carries), with what those check.
 */
export const TRAINING_CHECKS: Record<string, Check> = {
  "copy:copy": copies,
  "copy:copying_simple": copies,
  "copy:copying_multiple": (text, { prompt_to_repeat, N }) => {
    const parts = text.split("******");
    return (
      parts.length === number(N) && parts.every((part) => same(part, string(prompt_to_repeat)))
    );
  },
  "new:copy_span_idx": (text, { prompt_to_repeat, n_start, n_end }) =>
    same(text, [...string(prompt_to_repeat)].slice(number(n_start), number(n_end)).join("")),
  "copy:repeat_phrase": repeatsPhrase,
  "keywords:word_once": (text, { keyword }) => occurrences(text, string(keyword)) === 1,
  "keywords:word_count_different_numbers": (text, { keyword, frequency, relation }) =>
    related(occurrences(text, string(keyword)), relation, frequency),
  "keywords:exclude_word_harder": (text, { keyword }) => !hasWord(text, string(keyword)),
  "keywords:no_adjacent_consecutive": (text) =>
    spaced(text).every((word, index, all) => index === 0 || !follows(word, all[index - 1] ?? "")),
  "keywords:palindrome": (text) =>
    spaced(text).some((word) => word === [...word].reverse().join("")),
  "keywords:keyword_specific_position": (text, { keyword, n, m }) => {
    const wanted = tokens(string(keyword));
    const first = number(m) - 1;
    const found = tokens(sentences(text)[number(n) - 1] ?? "").slice(first, first + wanted.length);
    return wanted.length > 0 && found.join(" ") === wanted.join(" ");
  },
  "keywords:start_end": (text) => {
    const found = tokens(text);
    return found.length > 1 && same(found[0] ?? "", found.at(-1) ?? "");
  },
  "letters:letter_counting": (text, { N, relation }) =>
    related(text.match(/[a-zA-Z]/g)?.length ?? 0, relation, N),
  "letters:letter_counting2": (text, { letter, let_frequency, let_relation }) =>
    related(letterCount(text, string(letter)), let_relation, let_frequency),
  "count:lowercase_counting": (text, { N }) =>
    (text.match(LOWERCASE_WORD)?.length ?? 0) <= number(N),
  "count:count_unique": (text) => new Set(tokens(text)).size === tokens(text).length,
  "count:count_increment_word": (text, { keyword1, keyword2 }) =>
    occurrences(text, string(keyword1)) === 1 && occurrences(text, string(keyword2)) === 2,
  "count:counting_composition": (text, { n_sent, n_words }) => {
    const paragraphs = separated(text, /\s?\*\*\*\s?/);
    return (
      paragraphs?.length === 3 &&
      paragraphs.map(sentences).every((found) => {
        const long = found.every((sentence) => tokens(sentence).length === number(n_words));
        return long && found.length === number(n_sent);
      })
    );
  },
  "paragraphs:paragraphs": (text) => separated(text, /\s?\*\*\*\s?/)?.length === 2,
  "paragraphs:paragraphs2": (text) => separated(text, "\n\n")?.length === 2,
  "first_word:first_word_answer": (text, { first_word }) =>
    same(spaced(text)[0] ?? "", string(first_word)),
  "first_word:first_word_sent": (text, { first_word }) =>
    sentences(text).every((sentence) => same(spaced(sentence)[0] ?? "", string(first_word))),
  "last_word:last_word_answer": (text, { last_word }) => endsWith(text, string(last_word)),
  "last_word:last_word_sent": (text, { last_word }) =>
    sentences(text).every((sentence) => endsWith(sentence, string(last_word))),
  "detectable_format:sentence_hyphens": (text) => {
    const whole = sentences(text.replaceAll("-", " "));
    return text.split("-").every((part, index) => part === (whole[index] ?? part));
  },
  "detectable_format:square_brackets": (text) =>
    spaced(text).every((word) => word.startsWith("[") && word.endsWith("]")),
  "detectable_format:bigram_wrapping": (text) =>
    spaced(text).every((word, index, all) => {
      if (index % 2 === 1) return word.endsWith(">>");
      return index === all.length - 1 || word.startsWith("<<");
    }),
  "punctuation:punctuation_dot": (text) => !text.includes("."),
  "punctuation:punctuation_exclamation": (text) => !text.includes("!"),
};

function same(a: string, b: string): boolean {
  return a.trim().toLowerCase() === b.trim().toLowerCase();
}

function spaced(text: string): string[] {
  return text.split(/\s+/).filter((word) => word !== "");
}

/** Whether a word begins with the letter after the one that the other begins with. */
function follows(word: string, before: string): boolean {
  const code = (of: string) => of.toLowerCase().codePointAt(0) ?? 0;
  return code(word) - code(before) === 1;
}

function endsWith(text: string, word: string): boolean {
  return isWord(spaced(text).at(-1) ?? "", word);
}

const LOWERCASE_WORD = /(?<![\p{L}\p{N}\p{M}_])\p{Ll}[\p{Ll}\p{M}]*(?![\p{L}\p{N}_])/gu;
const LINE_END = /[\n\r\u2028\u2029]/;

/** From each `open` to the next `close`, one after another, in a time that grows with the line's length only. */
function between(line: string, open: string, close: string): string[] {
  const found: string[] = [];
  for (let end = 0; ; ) {
    const start = line.indexOf(open, end);
    const at = start < 0 ? -1 : line.indexOf(close, start + open.length);
    if (at < 0) return found;
    end = at + close.length;
    found.push(line.slice(start, end));
  }
}

/** The phrase so often, each time with one word between its ends changed. */
function repeatsPhrase(text: string, { phrase, small_n }: Record<string, unknown>): boolean {
  const wanted = spaced(string(phrase));
  const [first = "", last = ""] = [wanted[0], wanted.at(-1)];
  const found = text.split(LINE_END).flatMap((line) => between(line, `${first} `, ` ${last}`));
  if (found.length !== number(small_n)) return false;
  return found.map(spaced).every((words) => {
    const changed = words.filter((word, index) => word !== wanted[index]).length;
    return words.length === wanted.length && changed === 1;
  });
}
