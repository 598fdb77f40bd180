import { devanagariLanguage, foreignTo, isSwahili } from "./language-marks.ts";

/** Codes that rows may ask for beside those in `TOLD`, with the language that they stand for here. */
const ALIASES: Record<string, string> = { fil: "tl", id: "ms", iw: "he", nb: "no", nn: "no" };

/** What the detector tells apart, and Nepali and Swahili, which `language-marks.ts` adds. Sorani is left out. */
const TOLD = new Set(
  (
    "am ar az be bg bn ca cs da de el en es et eu fa fi fr gu he hi hr hu hy is it ja ka kn ko lo lt lv " +
    "ml mr ms ne nl no or pa pl pt ro ru sk sl sq sr sv sw ta te th tl tr uk ur vi yo zh"
  ).split(" "),
);

/** Letters in windows of other languages that a text may have: names, titles, quotations, wrong guesses. */
const MAX_FOREIGN_SHARE = 0.2;
/** The detector reads 350 bytes at once, and is right in 99 of 100 from 40 letters on. Units: characters. */
const WINDOW_LENGTH = 170;

/** The language that a row's code means, without its region: `pt-BR` is `pt`. Null: it can't be told. */
export function checkedLanguage(code: unknown): string | null {
  const base = String(code).toLowerCase().split(/[-_]/, 1)[0] ?? "";
  const language = Object.hasOwn(ALIASES, base) ? (ALIASES[base] ?? base) : base;
  return TOLD.has(language) ? language : null;
}

/**
 * The share of a text's letters by language, with the largest first. The text is told in windows of some 170 characters, so
 * that a second language is found wherever it stands; a short text is one window and counts as its likeliest language.
 * Code, links and formulas have no language. Equal texts give equal shares.
 */
export async function languageShares(text: string): Promise<[language: string, share: number][]> {
  // Half a megabyte of tables, and 70 MB once they are read: only threads that grade languages need them.
  const { eld } = await import("eld/extrasmall");
  const letters = new Map<string, number>();
  let all = 0;
  for (const window of windowsOf(withoutCode(text))) {
    const count = window.match(/\p{L}/gu)?.length ?? 0;
    if (count === 0) continue;
    const language = told(window, Object.entries(eld.detect(window).getScores()));
    letters.set(language, (letters.get(language) ?? 0) + count);
    all += count;
  }
  const shares = [...letters].map(([language, count]): [string, number] => [language, count / all]);
  return shares.sort(([, a], [, b]) => b - a);
}

/** Whether a text is in a language and, but for names and the like, in no other. */
export async function isInLanguage(text: string, code: unknown): Promise<boolean> {
  const language = checkedLanguage(code);
  const share = (await languageShares(text)).find(([told]) => told === language)?.[1] ?? 0;
  return share >= 1 - MAX_FOREIGN_SHARE;
}

/** Fewer say little of which language of one script they are. */
const FEW_LETTERS = 40;

/** Whether a text is in English for the most part. A few words are taken for it where their letters are Latin. */
export async function isEnglish(text: string): Promise<boolean> {
  const letters = text.match(/\p{L}/gu) ?? [];
  if (letters.length < FEW_LETTERS) {
    const latin = letters.filter((letter) => /\p{Script=Latin}/u.test(letter)).length;
    return latin * 2 > letters.length;
  }
  const shares = await languageShares(text);
  return shares[0]?.[0] === "en";
}

/** The best score of a language that has the window's letters in its alphabet. */
function told(window: string, scores: [language: string, score: number][]): string {
  const byWords = devanagariLanguage(window);
  if (byWords !== null) return byWords;
  if (isSwahili(window)) return "sw";
  const best = scores.toSorted(([, a], [, b]) => b - a);
  return best.find(([language]) => !foreignTo(language, window))?.[0] ?? "unknown";
}

function withoutCode(text: string): string {
  return text
    .replace(/```[^`]*```/g, "\n")
    .replace(/`[^`\n]*`/g, " ")
    .replace(/\bhttps?:\/\/\S+/gi, " ")
    .replace(/\$[^$\n]*\$/g, " ");
}

/** Windows of whole words; where a language has no blanks, of as many characters. The last one is no stub. */
function windowsOf(text: string): string[] {
  const windows: string[] = [];
  let open = "";
  for (const [part] of text.matchAll(/\S{1,50}|\s+/g)) {
    if (open.length >= WINDOW_LENGTH) {
      windows.push(open);
      open = "";
    }
    open += /^\s/.test(part) ? " " : part;
  }
  if (open.length < WINDOW_LENGTH / 3 && windows.length > 0) return windows;
  return [...windows, open];
}
