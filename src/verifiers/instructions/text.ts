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

/** Of a letter as it is, in both cases; no letter is taken apart. */
export function letterCount(text: string, letter: string): number {
  const wanted = letter.normalize("NFC").toLowerCase();
  return wanted === "" ? 0 : text.normalize("NFC").toLowerCase().split(wanted).length - 1;
}

/** As `str.isupper` and `str.islower` of Python: there is a letter, and none of the other case. */
export function isUpper(text: string): boolean {
  return /\p{L}/u.test(text) && text === text.toUpperCase() && text !== text.toLowerCase();
}

export function isLower(text: string): boolean {
  return /\p{L}/u.test(text) && text === text.toLowerCase() && text !== text.toUpperCase();
}
