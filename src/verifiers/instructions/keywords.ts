/** What a word is made of; scripts that write without blanks have no borders between words. */
const WORD = "[\\p{L}\\p{N}\\p{M}_]";
const WITHOUT_BLANKS =
  "[\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}]";
const BEGINS_AS_WORD = new RegExp(`^(?!${WITHOUT_BLANKS})${WORD}`, "u");
const ENDS_AS_WORD = new RegExp(`(?!${WITHOUT_BLANKS})${WORD}$`, "u");

/**
 * Text for comparison: without case (`STRASSE` is `straße`), one form of each accent and apostrophe, plain blanks, and
 * nothing that can't be seen, as a soft hyphen or a zero-width space inside a word.
 */
export function folded(text: string): string {
  return text
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .toUpperCase()
    .toLowerCase()
    .replace(/i\u0307/g, "i")
    .replace(/ς/g, "σ")
    .replace(/[‘’ʼ´`]/g, "'")
    .replace(/\s+/g, " ");
}

/** How often a part is in a text, also inside of words. */
export function occurrences(text: string, part: string): number {
  const wanted = folded(part);
  return wanted === "" ? 0 : folded(text).split(wanted).length - 1;
}

/**
 * Whether a text has a word or phrase by itself. Where the word begins or ends in a sign (`c++`, `#tag`), the sign is
 * its border.
 */
export function hasWord(text: string, word: string): boolean {
  const wanted = folded(word).trim();
  if (wanted === "") return false;
  const before = BEGINS_AS_WORD.test(wanted) ? `(?<!${WORD})` : "";
  const after = ENDS_AS_WORD.test(wanted) ? `(?!${WORD})` : "";
  return new RegExp(before + escaped(wanted) + after, "u").test(folded(text));
}

/** Whether a token is the word, but for signs around it: `"c++".` is `c++`. */
export function isWord(token: string, word: string): boolean {
  const wanted = folded(word).trim();
  const found = folded(token).trim();
  const at = wanted === "" ? -1 : found.indexOf(wanted);
  if (at < 0) return found === wanted;
  const around = found.slice(0, at) + found.slice(at + wanted.length);
  return !new RegExp(WORD, "u").test(around);
}

export function escaped(text: string): string {
  return text.replace(/[.*+?^${}()|[\]\\/-]/g, "\\$&");
}
