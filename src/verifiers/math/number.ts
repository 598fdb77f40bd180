import { equalRationals, parseDecimal, type Rational, rational } from "./rational.ts";

/** A number that is written out: `-3`, `1234.5`, `7/2`, `\frac{7}{2}`, `12%`. */
export type PlainNumber = { value: Rational; percent: boolean; decimal: boolean };

const FRACTION = /^([-+]?)(?:\\frac\{([-+]?\d+)\}\{(\d+)\}|\(?([-+]?\d+)\)?\/(\d+))$/;
const MIXED = /^([-+]?)\((\d+)\+\\frac\{(\d+)\}\{(\d+)\}\)$/;
const SCIENTIFIC = /^([-+]?\d+(?:\.\d+)?)\\cdot10\^\{?([-+]?\d{1,4})\}?$/;
const REPEATING = /^([-+]?\d*\.\d*)\\overline\{(\d+)\}$/;

/** Reads a normalised text as one number; null where it is none. */
export function parsePlainNumber(text: string): PlainNumber | null {
  const percent = text.endsWith("%");
  const body = percent ? text.slice(0, -1) : text;
  const written = parseDecimal(body);
  if (written) return { value: written, percent, decimal: body.includes(".") };
  const value = parseFraction(body) ?? parseScientific(body) ?? parseRepeating(body);
  return value && { value, percent, decimal: false };
}

/** How many places a decimal is written with, or null for what is no plain decimal. */
export function decimalPlaces(text: string): number | null {
  const match = /^[-+]?\d*\.(\d{1,15})$/.exec(text);
  return match ? (match[1] ?? "").length : null;
}

function parseFraction(text: string): Rational | null {
  if (text.length > 2_000) return null;
  const mixed = MIXED.exec(text);
  if (mixed) {
    const [, sign, whole = "", top = "", bottom = ""] = mixed;
    return signed(sign, BigInt(whole) * BigInt(bottom) + BigInt(top), BigInt(bottom));
  }
  const match = FRACTION.exec(text);
  if (!match) return null;
  const bottom = BigInt(match[3] ?? match[5] ?? "0");
  return signed(match[1], BigInt((match[2] ?? match[4] ?? "").replace("+", "")), bottom);
}

function parseScientific(text: string): Rational | null {
  const match = SCIENTIFIC.exec(text);
  return match && parseDecimal(`${match[1]}e${match[2]}`);
}

function parseRepeating(text: string): Rational | null {
  const match = REPEATING.exec(text);
  return match && parseDecimal(`${match[1]}(${match[2]})`);
}

function signed(sign: string | undefined, n: bigint, d: bigint): Rational | null {
  return d === 0n ? null : rational(sign === "-" ? -n : n, d);
}

/**
 * A decimal stands for every number that rounds to it at the sixth place (as in `math_verify`), so
 * `0.333333` is a third and `0.333` is not. Below one it must also agree to a thousandth of itself,
 * or every small number would equal zero. Without a decimal, numbers are equal only exactly.
 * One percent sign may be missing (`50` for `50%`) or resolved (`0.5` for `50%`).
 */
export function equalNumbers(a: PlainNumber, b: PlainNumber): boolean {
  const decimal = a.decimal || b.decimal;
  // Below one percent `0.5%` is hardly a slip for a half.
  const slip = a.percent || !b.percent || absolute(a.value.n) >= a.value.d;
  if (slip && equalValues(a.value, b.value, decimal)) return true;
  if (a.percent === b.percent) return false;
  const hundredth = (number: PlainNumber) =>
    number.percent ? rational(number.value.n, number.value.d * 100n) : number.value;
  return equalValues(hundredth(a), hundredth(b), decimal);
}

function equalValues(a: Rational, b: Rational, decimal: boolean): boolean {
  if (equalRationals(a, b)) return true;
  return decimal && withinRounding(a, b);
}

function withinRounding(a: Rational, b: Rational): boolean {
  const difference = absolute(a.n * b.d - b.n * a.d);
  const denominator = a.d * b.d;
  if (difference * 2_000_000n > denominator) return false;
  const left = absolute(a.n) * b.d;
  const right = absolute(b.n) * a.d;
  return difference * 1_000n <= left || difference * 1_000n <= right;
}

function absolute(value: bigint): bigint {
  return value < 0n ? -value : value;
}

const BASED = /^\(?(-?[0-9A-F]+)\)?_\{?(\d{1,2}|\\text\{[a-z]+\})\}?$/;
const BASE_NAMES = "zero one two three four five six seven eight nine ten eleven twelve".split(" ");

/**
 * `2516_8` and `2516_{\text{eight}}`; the digits alone are accepted too, another base is not. A base that the truth does
 * not have is one that the question speaks of.
 */
export function equalInBase(truth: string, answer: string, asked: boolean): boolean {
  const left = splitBase(truth);
  const right = splitBase(answer);
  if (left.base === null && (right.base === null || !asked)) return false;
  if (left.digits !== right.digits) return false;
  return left.base === null || right.base === null || left.base === right.base;
}

/** `2516_8`. */
export function namesItsBase(text: string): boolean {
  return BASED.test(text);
}

function splitBase(text: string): { digits: string; base: number | null } {
  const match = BASED.exec(text);
  if (!match) return { digits: text, base: null };
  const name = match[2] ?? "";
  const word = name.slice("\\text{".length, -1);
  return {
    digits: match[1] ?? "",
    base: /^\d/.test(name) ? Number(name) : BASE_NAMES.indexOf(word),
  };
}
