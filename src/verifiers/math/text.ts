type Rule = [pattern: RegExp, replacement: string];

/** Longer answers are not compared: nothing that a row asks for has this many characters. */
export const MAX_ANSWER_CHARS = 2_000;

const UNICODE: Record<string, string> = {
  "×": "\\times ",
  "·": "\\cdot ",
  "∙": "\\cdot ",
  "⋅": "\\cdot ",
  "÷": "/",
  "−": "-",
  "–": "-",
  π: "\\pi ",
  θ: "\\theta ",
  "√": "\\sqrt ",
  "≤": "\\le ",
  "≥": "\\ge ",
  "≠": "\\ne ",
  "≈": "\\approx ",
  "∞": "\\infty ",
  "°": "^\\circ ",
  "²": "^{2}",
  "³": "^{3}",
  "½": "\\frac{1}{2}",
  "∪": "\\cup ",
  "∩": "\\cap ",
  "∈": "\\in ",
  "±": "\\pm ",
  "∅": "\\emptyset ",
  "，": ",",
};
const UNICODE_CHARS = new RegExp(`[${Object.keys(UNICODE).join("")}]`, "gu");

/** What is only typesetting. Every pattern is one pass without nested repetition. */
const TYPESETTING: Rule[] = [
  // "About" is said of the number that is compared all the same.
  [/^\s*([a-zA-Z]?)\s*\\(?:approx|simeq)(?![a-zA-Z])/, "$1="],
  [/\\(?:left|right|middle)\s*\./g, ""],
  [/\\(?:left|right|middle|[bB]igg?[lrm]?)(?![a-zA-Z])/g, ""],
  [/\\(?:displaystyle|textstyle|scriptstyle|limits|nolimits|quad|qquad|rm|bf)(?![a-zA-Z])/g, " "],
  [/\\hspace\{[^{}]*\}/g, " "],
  [/(?<!\\)\\!/g, ""],
  [/(?<!\\)\\[,;: ]/g, " "],
  [/~/g, " "],
  [/\\\$|\$/g, ""],
  [/(?<!\\)\\[()[\]]/g, ""],
  [/\\\\\[[^\]]{0,10}\]/g, "\\\\"],
];

const SYNONYMS: Rule[] = [
  [/\\[dtc]frac(?![a-zA-Z])/g, "\\frac"],
  [/\{([^{}]*?)\\over(?![a-zA-Z])([^{}]*)\}/g, "\\frac{$1}{$2}"],
  [/\\[dt]binom(?![a-zA-Z])/g, "\\binom"],
  [/\\(?:leqslant|leqq|leq|le)(?![a-zA-Z])/g, "\\le "],
  [/\\(?:geqslant|geqq|geq|ge)(?![a-zA-Z])/g, "\\ge "],
  [/<=/g, "\\le "],
  [/>=/g, "\\ge "],
  [/\\neq(?![a-zA-Z])|\\not\s*=/g, "\\ne "],
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

/**
 * Words: one spelling of `\text`, connectives as commas, percent as a sign. A letter set as text is the
 * letter, but after a number it may be a unit (`5\text{h}`).
 */
const WORDS: Rule[] = [
  [new RegExp(`\\\\(?:${STYLED})\\s*\\{`, "g"), "\\text{"],
  [/(?<!\d\s*)\\text\{\s*([a-zA-Z])\s*\}/g, " $1 "],
  [/\\text\{\s*([^mghs\W\d_]|-?\d+(?:\.\d+)?)\s*\}/g, " $1 "],
  [/\\text\{\s*(?:and|or)\s*\}|(?<![a-zA-Z\\{])(?:and|or)(?![a-zA-Z])/g, ","],
  [/\\text\{\s*(?:percent|%|\\%)\s*\}|\\%|(?<![a-zA-Z])(?:percent|pct)(?![a-zA-Z])/g, "%"],
  [/\\text\{\s*\}/g, ""],
  // A word of four letters is no product of variables.
  [
    /(?<=\d)\s+(?!sinh|cosh|tanh|sqrt|arc|infinity)([a-zA-Z]{4,}(?:\s+[a-zA-Z]+){0,5})\.?\s*$/,
    "\\text{$1}",
  ],
  [/,\s*,/g, ","],
];

const NUMBERS: Rule[] = [
  [/\{,\}/g, ","],
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
  const plain = raw.replace(UNICODE_CHARS, (char) => UNICODE[char] ?? char);
  const rules = [...TYPESETTING, ...WORDS, ...SYNONYMS, ...NUMBERS];
  const text = rules.reduce((value, [pattern, by]) => value.replace(pattern, by), plain);
  return trimPunctuation(squeeze(braceRoots(text)));
}

/** Blanks go, except where they end a command (`\pi r`) or part two numbers. */
function squeeze(text: string): string {
  return text.replace(
    /(\\[a-zA-Z]+)\s+(?=[a-zA-Z])|(\d)\s+(?=\d)|\s+/g,
    (_blank, command: string | undefined, digit: string | undefined) => {
      if (command !== undefined) return `${command} `;
      return digit === undefined ? "" : `${digit} `;
    },
  );
}

function trimPunctuation(text: string): string {
  let start = 0;
  let end = text.length;
  while (start < end && "=:,+".includes(text.charAt(start))) start++;
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
