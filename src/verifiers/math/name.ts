import type { Shape } from "./shape.ts";

const SYMBOL = String.raw`(?:[a-zA-Z]|[A-Z]{2,}|\\(?!frac|sqrt|sin|cos|tan|log|ln|cdot|text|pi(?![a-z])|infty|emptyset)[a-zA-Z]+ ?[a-zA-Z]?)`;
const SUBSCRIPT = String.raw`(?:_\w|_\{[^{}=]{1,20}\})?`;
const STYLED = String.raw`\\(?:overline|overrightarrow|vec|hat|bar|widehat|mathbf|operatorname)\{[a-zA-Z]+\}`;
const PLAIN = String.raw`(?:${SYMBOL}|${STYLED})${SUBSCRIPT}(?:'|\^\{-1\}|\^\*)?`;
const AREA = String.raw`\[[A-Z]{3,}\]`;
const ANGLE = String.raw`m?\\(?:angle|triangle|measuredangle) ?(?:[A-Z]{1,4}|\\?[a-zA-Z]+)`;
const LENGTH = String.raw`\|${PLAIN}\||\|\|${PLAIN}\|\|`;
const ARGUMENT = String.raw`\([^()=<>]{1,40}(?:\([^()=<>]{1,20}\))?[^()=<>]{0,40}\)`;
const FUNCTION = String.raw`(?:[fghpquvyFGHPQEVTSRNALCDM]|\\(?:phi|psi|mu|varphi|sigma|tau|max|min|det|gcd) ?)${SUBSCRIPT}(?:'{1,3}|\^\{-1\}|\^\{\(\d\)\})?${ARGUMENT}`;
const CHANCE = String.raw`P\([^()]{1,40}(?:=|\|)[^()]{1,40}\)|\\mathbb\{[EP]\}(?:\[[^[\]]{1,40}\]|\([^()]{1,40}\))|\\text\{[a-z]+\}\([^()]{1,20}\)`;
const RATIO_OF_ANGLE = String.raw`\\(?:sin|cos|tan|cot|sec|csc) ?(?:\([A-Z]\)|[A-Z]|\\(?:theta|alpha|beta|gamma|phi)|\\angle [A-Z]+)`;
const ONE = `(?:${[FUNCTION, CHANCE, RATIO_OF_ANGLE, ANGLE, AREA, LENGTH, PLAIN].join("|")})`;
const NAME = new RegExp(`^(?:${ONE}|\\\\frac\\{${ONE}\\}\\{${ONE}\\}|${ONE}[:/]${ONE})$`);

/** Words that make a left side say something else than "this is". */
const DENYING =
  /\b(?:not|no|never|isn|maybe|perhaps|possibly|either|or|wrong|false|incorrect|if|unless|except|than)\b/;

/**
 * What a value is given to: `x`, `x_1`, `\theta`, `f(x)`, `P(A)`, `|AB|`, `\angle ABC`, `\frac{AB}{CD}`, `(x,y)`,
 * `\text{area}`.
 */
export function isName(shape: Shape | undefined): boolean {
  if (shape?.kind === "tuple") return shape.items.every(isName);
  if (shape?.kind === "words")
    return /^[a-z][a-z' ]*$/.test(shape.text) && !DENYING.test(shape.text);
  return shape?.kind === "expression" && shape.unit === null && isNameText(shape.text);
}

export function isNameText(text: string): boolean {
  if (text.length > 120 || !NAME.test(text)) return false;
  const applied = /^([a-zA-Z])\((.*)\)$/.exec(text);
  // `n(n+1)` is a product.
  return (
    applied === null ||
    !new RegExp(`(?<![a-zA-Z\\\\])${applied[1]}(?![a-zA-Z])`).test(applied[2] ?? "")
  );
}

export function nameOf(shape: Shape | undefined): string {
  const text = shape?.kind === "expression" || shape?.kind === "words" ? shape.text : "";
  return text.replace(/[{}\s]/g, "");
}

/** `x_1` and `x_2` are values of one unknown. */
export function sameUnknown(names: string[]): boolean {
  return new Set(names.map((name) => name.replace(/_.*$/, ""))).size === 1;
}
