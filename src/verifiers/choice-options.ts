export type Option = { letter: string; text: string };

/** Letters that multilingual rows use for A to D. */
export const FOREIGN_LETTERS: Record<string, string> = {
  ...{ أ: "A", ب: "B", ج: "C", د: "D" },
  ...{ অ: "A", ব: "B", ড: "C", ঢ: "D" },
};

const SET_AS_TEXT =
  /\\(?:text|math)(?:bf|it|rm|sf|tt|normal|up)?(?![a-zA-Z])|\\(?:boxed|fbox|mbox|hbox|emph|bf|it|rm|sf|tt|em|underline|boldsymbol|bm|operatorname|math(?:bb|cal|frak|scr)|q?quad|left|right|displaystyle|(?:foot|script)?tiny|small|normalsize|[lL]arge|LARGE|[hH]uge)(?![a-zA-Z])|\\(?:text|f|color)?colou?r(?:box)?\s*\{[^{}]*\}|\\[()[\],;:! ]/g;

/** Without LaTeX's and Markdown's ways to set text, in one form of each character, with single blanks. */
export function plainText(text: string): string {
  return text
    .replace(SET_AS_TEXT, " ")
    .normalize("NFKC")
    .replace(/\p{Cf}/gu, "")
    .replace(/<\/?(?:b|i|strong|em|u|code|br|answer|mark|span|p|div|center)\s*\/?>/gi, " ")
    .replace(/[\p{Extended_Pictographic}\u{1f1e6}-\u{1f1ff}\ufe0e\ufe0f\u20e3]/gu, " ")
    .replace(/−/g, "-")
    .replace(/[。।॥]/g, ".")
    .replace(/[、،]/g, ",")
    .replace(/[؛・]/g, ";")
    .replace(/[$*_`#~{}\\|]/g, (sign) => (sign === "|" ? " / " : " "))
    .replace(/\s+/g, " ")
    .replace(/([([]) | (?=[)\]])/g, "$1")
    .replace(/^(?:[\s/]|->|→|⇒|=>)+|[\s/]+$/g, "");
}
