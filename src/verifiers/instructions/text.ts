import { trimEndOf } from "../../lib/trim-chars.ts";

/** Words as runs of letters, digits and underscores. */
export function words(text: string): string[] {
  return text.match(/[\p{L}\p{N}\p{M}_]+/gu) ?? [];
}

const ABBREVIATIONS = new Set(
  "mr mrs ms dr prof sr jr st vs etc e.g i.e inc ltd co no fig al approx dept est u.s".split(" "),
);

/**
 * The sentences of a text: ends by `.`, `!` or `?` before a blank, except after abbreviations and initials. A
 * stand-in for the trained tokenizer that IFEval uses; the two differ on rare texts only.
 */
export function sentences(text: string): string[] {
  const found: string[] = [];
  let open: string[] = [];
  for (const word of text.split(/\s+/)) {
    if (word === "") continue;
    open.push(word);
    const bare = trimEndOf(word, "\"'”’)]*_");
    if (!/[.!?…。！？]$/.test(bare)) continue;
    const stem = bare
      .slice(0, -1)
      .toLowerCase()
      .replace(/^["'“(]+/, "");
    if (bare.endsWith(".") && (ABBREVIATIONS.has(stem) || /^[a-z]$/.test(stem))) continue;
    found.push(open.join(" "));
    open = [];
  }
  return open.length === 0 ? found : [...found, open.join(" ")];
}

/** Words and marks, each mark for itself. */
export function tokens(text: string): string[] {
  return (
    text.match(/[\p{L}\p{N}\p{M}_]+(?:['’-][\p{L}\p{N}\p{M}_]+)*|[^\s\p{L}\p{N}\p{M}_]/gu) ?? []
  );
}

/** Without a code fence around it. */
export function unfenced(text: string): string {
  return text
    .trim()
    .replace(/^```[a-zA-Z]*/, "")
    .replace(/```$/, "")
    .trim();
}

export function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
}

export function occurrences(text: string, part: string): number {
  if (part === "") return 0;
  return text.toLowerCase().split(part.toLowerCase()).length - 1;
}

/** As `str.isupper` and `str.islower` of Python: there is a letter, and none of the other case. */
export function isUpper(text: string): boolean {
  return /\p{L}/u.test(text) && text === text.toUpperCase() && text !== text.toLowerCase();
}

export function isLower(text: string): boolean {
  return /\p{L}/u.test(text) && text === text.toLowerCase() && text !== text.toUpperCase();
}

/** Scripts by language code, for languages that can be told by their script or share it with few. */
const SCRIPTS: Record<string, RegExp> = {
  ar: /\p{Script=Arabic}/u,
  fa: /\p{Script=Arabic}/u,
  ur: /\p{Script=Arabic}/u,
  bg: /\p{Script=Cyrillic}/u,
  ru: /\p{Script=Cyrillic}/u,
  uk: /\p{Script=Cyrillic}/u,
  hi: /\p{Script=Devanagari}/u,
  mr: /\p{Script=Devanagari}/u,
  ne: /\p{Script=Devanagari}/u,
  bn: /\p{Script=Bengali}/u,
  el: /\p{Script=Greek}/u,
  gu: /\p{Script=Gujarati}/u,
  he: /\p{Script=Hebrew}/u,
  ja: /[\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Han}]/u,
  kn: /\p{Script=Kannada}/u,
  ko: /\p{Script=Hangul}/u,
  ml: /\p{Script=Malayalam}/u,
  pa: /\p{Script=Gurmukhi}/u,
  ta: /\p{Script=Tamil}/u,
  te: /\p{Script=Telugu}/u,
  th: /\p{Script=Thai}/u,
  zh: /\p{Script=Han}/u,
};

export const LANGUAGES = Object.keys(SCRIPTS);

/** Whether most letters are of the language's script. */
export function isInScriptOf(language: string, text: string): boolean {
  const script = SCRIPTS[language];
  const letters = text.match(/\p{L}/gu) ?? [];
  if (!script || letters.length === 0) return false;
  return letters.filter((letter) => script.test(letter)).length > letters.length / 2;
}
