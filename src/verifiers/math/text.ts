import { withoutSigns } from "./unicode.ts";
import { isPlainWord } from "./unit-words.ts";

type Rule = [pattern: RegExp, replacement: string];

/** Longer answers are not compared: nothing that a row asks for has this many characters. */
export const MAX_ANSWER_CHARS = 2_000;

/**
 * Rows and models that escape twice write `\\\\frac`. Within an environment two backslashes end a line, so there it
 * stays.
 */
const ESCAPED_TWICE =
  /\\\\(?=(?:[dtc]?frac|left|right|leq?|geq?|neq?|sqrt|pi|infty|cup|text|cdot|times|in|boxed|pm|%|\$)(?![a-z]))/g;

/** A dollar sign before an amount is a unit; the others enclose formulas. */
const MONEY: Rule[] = [
  [/\\text\{\s*\\?\$\s*\}/g, "\\$"],
  [/(\d)\s*\\\$/g, "$1\\text{dollars}"],
  [/\\\$\s*(?![\s,;$])([^,;=<>$]*(?:,(?:\\!)?\d{3}(?!\d)[^,;=<>$]*)*)/g, "$1\\text{dollars}"],
  [/[\u20ac]\s*(\d[\d.,]*)/g, "$1\\text{euro}"],
];

/** What is only typesetting. Every pattern is one pass without nested repetition. */
const TYPESETTING: Rule[] = [
  [/^\s*\\text(?:bf)?\{\s*(?:the )?(?:final )?answer(?: is)?\s*[:=]?\s*\}/i, ""],
  [/^\s*\\text(?:bf)?\{\s*(?:the )?(?:final )?answer(?: is)?\s*[:=]?\s*(?=[-\d])/i, "{"],
  [/\\(?:text)?color\s*\{[a-zA-Z]{1,20}\}/g, ""],
  [/\\(?:underline|mathbin|mathrel|mathord)(?=\s*\{)/g, ""],
  [/\\(?:tiny|small|normalsize|large|Large|LARGE|huge|Huge)(?![a-zA-Z])/g, " "],
  [/\{([-:])\}/g, "$1"],
  // "About" is said of the number that is compared all the same.
  [/^\s*([a-zA-Z]?)\s*\\(?:approx|simeq)(?![a-zA-Z])/, "$1="],
  [/\\(?:left|right|middle)\s*\./g, ""],
  [/\\(?:left|right|middle|[bB]igg?[lrm]?)(?![a-zA-Z])/g, ""],
  [/\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits|rm|bf|sf|it)(?![a-zA-Z])/g, " "],
  [/\\q?quad/g, " "],
  [/\\(?:boxed|fbox)(?![a-zA-Z])/g, ""],
  [/\\hspace\{[^{}]*\}/g, " "],
  [/(?<!\\)\\!/g, ""],
  [/(?<!\\)\\[,;: ]/g, " "],
  [/~/g, " "],
  [/(?<!\\)\$/g, ""],
  [/(?<!\\)\\[()[\]]/g, ""],
  [/\\\\\[[^\]]{0,10}\]/g, "\\\\"],
];

const SYNONYMS: Rule[] = [
  [/\\abs\s*\{([^{}]{1,100})\}/g, "|$1|"],
  [/\\text\{\s*(?:all )?real numbers?\s*\}/gi, "\\mathbb{R}"],
  [/\\[dtc]frac(?![a-zA-Z])/g, "\\frac"],
  [/\{([^{}]*?)\\over(?![a-zA-Z])([^{}]*)\}/g, "\\frac{$1}{$2}"],
  [/\\[dt]binom(?![a-zA-Z])/g, "\\binom"],
  [/\\(?:leqslant|leqq|leq|le)(?![a-zA-Z])/g, "\\le "],
  [/\\(?:geqslant|geqq|geq|ge)(?![a-zA-Z])/g, "\\ge "],
  [/<=/g, "\\le "],
  [/>=/g, "\\ge "],
  [/\\neq(?![a-zA-Z])|\\not\s*=|!\s*=/g, "\\ne "],
  [/\\lt(?![a-zA-Z])/g, "<"],
  [/\\gt(?![a-zA-Z])/g, ">"],
  [/\\(?:lbrace|lbrack)(?![a-zA-Z])/g, "\\{"],
  [/\\rbrace(?![a-zA-Z])/g, "\\}"],
  [/\\(?:lvert|rvert|vert)(?![a-zA-Z])/g, "|"],
  [/\\colon(?![a-zA-Z])/g, ":"],
  [/\\(?:varnothing|O)(?![a-zA-Z])/g, "\\emptyset"],
  [/\\\{\s*\\\}/g, "\\emptyset"],
  [/\\(?:R|mathbf\s*\{R\}|mathbb\s*R)(?![a-zA-Z])/g, "\\mathbb{R}"],
  [/\\(?:times|ast)(?![a-zA-Z])/g, "\\cdot "],
  [/\\div(?![a-zA-Z])/g, "/"],
  [/\*\*/g, "^"],
  [/\*/g, "\\cdot "],
  [/\\degrees?(?![a-zA-Z])/g, "^\\circ"],
  [/\\(sin|cos|tan)\s*\^\s*\{\s*-1\s*\}/g, "\\arc$1 "],
  [/\\pmod\s*(\d+)/g, "\\pmod{$1}"],
  [/\\imath(?![a-zA-Z])/g, "i"],
  [/(?<![\\a-zA-Z])(sqrt|arcsin|arccos|arctan|sin|cos|tan|ln|log|pi)(?![a-zA-Z])/g, "\\$1 "],
  [/(?<![\\a-zA-Z])(?:infinity|inf|oo)(?![a-zA-Z])/g, "\\infty "],
];

const STYLED =
  "text|textbf|textit|textrm|textnormal|mathrm|mathbf|mathit|mathsf|mbox|hbox|operatorname";

/** Styles of mathematics: what they hold is mathematics, unless it is a word. */
const MATH_STYLED =
  "textbf|textit|textrm|textnormal|mathrm|mathbf|mathit|mathsf|boldsymbol|bm|pmb|text";

/**
 * Words: one spelling of `\text`, connectives as commas, percent as a sign. A letter set as text is the
 * letter, but after a number it may be a unit (`5\text{h}`).
 */
const WORDS: Rule[] = [
  [
    /\\(?:operatorname|mathrm|text|rm)\*?\s*\{\s*((?:arc)?(?:sin|cos|tan)|cot|sec|csc|sinh|cosh|tanh|ln|log|lg|exp|gcd|min|max)\s*\}/g,
    "\\$1 ",
  ],
  [
    new RegExp(`\\\\(?:${MATH_STYLED})\\s*\\{([^{}\\\\a-zA-Z]*\\d[^{}\\\\a-zA-Z]*)\\}`, "g"),
    " $1 ",
  ],
  [
    new RegExp(`\\\\(?:${MATH_STYLED})\\s*\\{(?=\\\\(?:d?frac|sqrt|pi|infty)|-?\\d+\\\\)`, "g"),
    "{",
  ],
  [/\\(?:boldsymbol|bm|pmb|vec)\s*\{\s*([a-zA-Z])\s*\}/g, " $1 "],
  [new RegExp(`\\\\(?:${STYLED})\\s*\\{`, "g"), "\\text{"],
  [
    /\\text\{([^{}^\d]{0,40})\^(?:\{(-?\d)\}|(-?\d))([^{}]{0,40})\}/g,
    "\\text{$1}^{$2$3}\\text{$4}",
  ],
  // A number or an equation that is set as text is read as if it were not.
  [/\\text\{\s*(-?[\d.,]*\d)\s*([a-zA-Z][^{}\\=]*)\}/g, "$1\\text{$2}"],
  [/\\text\{\s*([-+(]?\d[^{}\\]*|[a-zA-Z]\s*=[^{}\\]*)\}/g, " $1 "],
  [/\\frac\s*\{\s*(\\text\{[^{}]*\})\s*\}\s*\{\s*(\\text\{[^{}]*\})\s*\}/g, "$1/$2"],
  [/(?<![\d}]\s*|\}\s*\\cdot\s*)\\text\{\s*([a-zA-Z])\s*\}/g, " $1 "],
  [/\\text\{\s*([,;])\s*\}/g, "$1"],
  [/\\text\{\s*([^mghslLNJWVK\W\d_])\s*\}/g, " $1 "],
  [/\\text\{\s*,?\s*(?:and|or)\s*,?\s*\}|(?<![a-zA-Z\\{])(?:and|or)(?![a-zA-Z])/g, ","],
  [
    /\\text\{\s*(?:percent|percentage|%|\\%)\s*\}|\\%|(?<![a-zA-Z])(?:percent|percentage|pct)(?![a-zA-Z])/g,
    "%",
  ],
  [/\\text\{\s*\}/g, " "],
];

/** `12 square units` without `\text`. What may also be a product of variables stays. */
const TAIL_WORDS = /([\d)}%]\s*)(?<![\\a-zA-Z])([a-zA-Z]+(?:[\s-]+[a-zA-Z]+){0,11})/g;
const FUNCTIONS =
  /^(?:arc)?(?:sin|cos|tan|cot|sec|csc|sinh|cosh|tanh|ln|log|lg|exp|sqrt|pi|infinity|inf|oo|mod|pm|cdot)$/;

function wrapWords(text: string): string {
  return text.replace(TAIL_WORDS, (all, before: string, words: string, at: number) => {
    if (insideText(text, at)) return all;
    const [first = ""] = words.split(/[\s-]/);
    const after = text[at + all.length] ?? "";
    if (after === "(" || FUNCTIONS.test(first)) return all;
    return isPlainWord(first) ? `${before}\\text{${words}}` : all;
  });
}

const SENTENCE = /^\s*[a-zA-Z'-]+(?:\s+[a-zA-Z'-]+){1,30}[.!]?\s*$/;

/** Words alone, without `\text`. Letters and names of functions alone are mathematics. */
function setWords(text: string): string {
  const words = text.trim().split(/\s+/);
  const prose =
    SENTENCE.test(text) && words.some((word) => word.length >= 4 && !FUNCTIONS.test(word));
  return prose && !words.some((word) => FUNCTIONS.test(word)) ? `\\text{${text.trim()}}` : text;
}

function insideText(text: string, at: number): boolean {
  const open = text.lastIndexOf("\\text{", at);
  return open >= 0 && text.indexOf("}", open) > at;
}

/** Commas that group digits, where their spelling says so. `1,234` alone does; in brackets it is two numbers. */
const GROUPS: Rule[] = [
  [/(\d)\{,\}(?=\d{3})/g, "$1"],
  [/(\d),\\!\s*(?=\d{3})/g, "$1"],
  [/\{,\}/g, ","],
];

const NUMBERS: Rule[] = [
  [/(?<=[([,]\s*)\+/g, ""],
  [/\\frac\s*(\d)\s*(\d)/g, "\\frac{$1}{$2}"],
  [/\\frac\s*(\d)\s*\{/g, "\\frac{$1}{"],
  [/\\sqrt\s*(\d)/g, "\\sqrt{$1}"],
  [
    /(?<![\d^_.}a-zA-Z])(\d{1,9})\s*\\frac\s*\{(\d{1,9})\}\s*\{?(\d{1,9})\}?/g,
    "($1+\\frac{$2}{$3})",
  ],
  [/(?<![\d^_.}a-zA-Z])(\d{1,9})\s+(\d{1,9})\s*\/\s*(\d{1,9})/g, "($1+\\frac{$2}{$3})"],
  [/(?<![\d.])(\d{1,3}) (\d{3})(?: (\d{3}))?(?: (\d{3}))?(?![\d ])/g, "$1$2$3$4"],
  [/(?<![\d.])\.(?=\d)/g, "0."],
];

/**
 * The one spelling that equal answers usually share: no typesetting, no blanks, one name for each
 * command. It changes no meaning; what needs mathematics is left to the comparison of shapes.
 */
export function normalise(raw: string): string {
  const single = raw.includes("\\begin") ? raw : raw.replace(ESCAPED_TWICE, "\\");
  const written = applied(paired(withoutSigns(single)), [...GROUPS, ...MONEY]);
  const text = wrapWords(applied(setWords(groupDigits(applied(written, TYPESETTING))), WORDS));
  return trimPunctuation(squeeze(braceRoots(applied(text, [...SYNONYMS, ...NUMBERS]))));
}

function applied(text: string, rules: Rule[]): string {
  return rules.reduce((value, [pattern, by]) => value.replace(pattern, by), text);
}

/** A dollar sign without a partner is money. */
function paired(text: string): string {
  const signs = text.match(/(?<!\\)\$/g)?.length ?? 0;
  return signs % 2 === 1 ? text.replace(/(?<!\\)\$(?=\s*\d)/, "\\$$") : text;
}

const GROUPED = /(?<![\d.,]|, )[1-9]\d{0,2}(?:,\d{3})+(?![\d]|,)/g;

/** Joins grouped digits that stand outside every bracket, where a comma without a blank parts no items. */
function groupDigits(text: string): string {
  return text.replace(GROUPED, (digits, at: number) =>
    depthAt(text, at) === 0 ? digits.replaceAll(",", "") : digits,
  );
}

function depthAt(text: string, end: number): number {
  let depth = 0;
  for (let at = 0; at < end; at++) {
    if ("([{".includes(text[at] as string)) depth++;
    else if (")]}".includes(text[at] as string)) depth--;
  }
  return depth;
}

/** Blanks go, except where they end a command (`\pi r`), part two numbers, or part words. */
function squeeze(text: string): string {
  return text.replace(
    /\\text\{([^{}]*)\}|(\\[a-zA-Z]+)\s+(?=[a-zA-Z])|([\d.])\s+(?=[\d.])|\s+/g,
    (_all, words: string | undefined, command: string | undefined, digit: string | undefined) => {
      if (words !== undefined) return `\\text{${words.trim().replace(/\s+/g, " ")}}`;
      if (command !== undefined) return `${command} `;
      return digit === undefined ? "" : `${digit} `;
    },
  );
}

function trimPunctuation(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && "=:,+".includes(text.charAt(start))) start++;
  // Dots at the end say that something follows.
  if (/\.\s*\.\s*$/.test(text)) return text.slice(start);
  while (end > start && ".,;:".includes(text.charAt(end - 1))) end--;
  return text.slice(start, end);
}

/** `\sqrt(x+1)` means `\sqrt{x+1}`; TeX would take the bracket alone. */
function braceRoots(text: string): string {
  const parts = text.split(/\\sqrt\s*\(/);
  let result = parts[0] ?? "";
  for (const part of parts.slice(1)) {
    const close = closingParenthesis(part);
    result +=
      close < 0 ? `\\sqrt(${part}` : `\\sqrt{${part.slice(0, close)}}${part.slice(close + 1)}`;
  }
  return result;
}

function closingParenthesis(text: string): number {
  let depth = 1;
  for (let at = 0; at < text.length; at++) {
    if (text[at] === "(") depth++;
    else if (text[at] === ")" && --depth === 0) return at;
  }
  return -1;
}
