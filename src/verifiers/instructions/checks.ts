import { trimEndOf, trimStartOf } from "../../lib/trim-chars.ts";
import {
  type Arguments,
  type Check,
  number,
  related,
  separated,
  string,
  texts,
} from "./arguments.ts";
import { escaped, hasWord, isWord, occurrences } from "./keywords.ts";
import { isEnglish, isInLanguage } from "./language.ts";
import { isLower, isUpper, letterCount, sentences, unfenced, words } from "./text.ts";
import { TRAINING_CHECKS } from "./training-checks.ts";

/** Each instruction of IFEval and of its training sets by its id. Arguments are a row's `kwargs`. */
export const CHECKS: Record<string, Check> = {
  ...TRAINING_CHECKS,
  "keywords:existence": (text, { keywords }) =>
    texts(keywords).every((word) => occurrences(text, word) > 0),
  "keywords:frequency": (text, { keyword, frequency, relation }) =>
    related(occurrences(text, string(keyword)), relation, frequency),
  "keywords:forbidden_words": (text, { forbidden_words }) =>
    !texts(forbidden_words).some((word) => hasWord(text, word)),
  "keywords:letter_frequency": (text, { letter, let_frequency, let_relation }) =>
    related(letterCount(text, string(letter)), let_relation, let_frequency),
  "language:response_language": (text, { language }) => isInLanguage(text, language),
  "length_constraints:number_sentences": (text, { num_sentences, relation }) =>
    related(sentences(text).length, relation, num_sentences),
  "length_constraints:number_words": (text, { num_words, relation }) =>
    related(words(text).length, relation, num_words),
  "length_constraints:number_paragraphs": (text, { num_paragraphs }) =>
    separated(text, /\s?\*\*\*\s?/)?.length === num_paragraphs,
  "length_constraints:nth_paragraph_first_word": nthParagraph,
  "detectable_content:number_placeholders": (text, { num_placeholders }) =>
    count(text, /\[[^[\]\n]*\]/g) >= number(num_placeholders),
  "detectable_content:postscript": (text, { postscript_marker }) =>
    postscript(string(postscript_marker)).test(text.toLowerCase()),
  "detectable_format:number_bullet_lists": (text, { num_bullets }) =>
    count(text, /^[ \t]*(\*[^*\n]|-)/gm) === num_bullets,
  "detectable_format:constrained_response": (text) =>
    ["yes", "no", "maybe"].some((word) => text.includes(`My answer is ${word}.`)),
  "detectable_format:number_highlighted_sections": (text, { num_highlights }) =>
    highlights(text) >= number(num_highlights),
  "detectable_format:multiple_sections": (text, { section_spliter, num_sections }) =>
    count(text, new RegExp(`${escaped(string(section_spliter))}\\s?\\d+`, "g")) >=
    number(num_sections),
  "detectable_format:json_format": (text) => isJson(unfenced(text)),
  "detectable_format:title": (text) =>
    [...text.matchAll(/<<([^\n<>]+)>>/g)].some(([, title]) => title?.trim() !== ""),
  "combination:two_responses": (text) => {
    const parts = separated(text, "******");
    return parts?.length === 2 && parts[0]?.trim() !== parts[1]?.trim();
  },
  "combination:repeat_prompt": (text, { prompt_to_repeat }) =>
    text.trim().toLowerCase().startsWith(string(prompt_to_repeat).trim().toLowerCase()),
  "startend:end_checker": (text, { end_phrase }) =>
    withoutQuotes(text).toLowerCase().endsWith(string(end_phrase).trim().toLowerCase()),
  "startend:quotation": (text) => /^".*"$/s.test(text.trim()) && text.trim().length > 1,
  "change_case:capital_word_frequency": (text, { capital_frequency, capital_relation }) =>
    related(words(text).filter(isUpper).length, capital_relation, capital_frequency),
  "change_case:english_capital": async (text) => isUpper(text) && (await isEnglish(text)),
  "change_case:english_lowercase": async (text) => isLower(text) && (await isEnglish(text)),
  "punctuation:no_comma": (text) => !text.includes(","),
};

function nthParagraph(text: string, args: Arguments): boolean {
  const paragraphs = text.split(/\n\n/);
  const filled = paragraphs.filter((paragraph) => paragraph.trim() !== "").length;
  if (filled !== args.num_paragraphs) return false;
  const paragraph = paragraphs[number(args.nth_paragraph) - 1]?.trim() ?? "";
  const first = (paragraph.split(/\s+/)[0] ?? "").replace(/^["']+/, "");
  const wanted = string(args.first_word);
  const bare = first.split(/[.,?!'"]/)[0] ?? "";
  return first !== "" && (isWord(first, wanted) || isWord(bare, wanted));
}

function postscript(marker: string): RegExp {
  if (marker === "P.P.S") return /p\.\s?p\.\s?s/m;
  if (marker === "P.S.") return /p\.\s?s\./m;
  return new RegExp(escaped(marker.toLowerCase()), "m");
}

function highlights(text: string): number {
  const found = [...text.matchAll(/\*\*([^\n*]*)\*\*|\*([^\n*]*)\*/g)];
  return found.filter(([, bold, plain]) => (bold ?? plain ?? "").trim() !== "").length;
}

function withoutQuotes(text: string): string {
  return trimStartOf(trimEndOf(text.trim(), '"'), '"');
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
