import { isObject } from "../lib/is-object.ts";
import { trimEndOf, trimStartOf } from "../lib/trim-chars.ts";

/**
 * Whether a program printed what is expected: as many lines, each equal without the blanks around it, or equal word
 * by word where numbers may be written differently (`1.0` and `1`, `1e3` and `1000`). With `tolerance`, numbers that
 * are not whole may also differ by that much, absolutely or relatively.
 */
export function sameOutput(printed: string, expected: string, tolerance = 0): boolean {
  const got = linesOf(printed);
  const wanted = linesOf(expected);
  if (got.length !== wanted.length) return false;
  return got.every((line, index) => sameLine(line, wanted[index] as string, tolerance));
}

function linesOf(text: string): string[] {
  return text
    .trim()
    .split("\n")
    .map((line) => line.trim());
}

function sameLine(got: string, wanted: string, tolerance: number): boolean {
  if (got === wanted) return true;
  const words = got.split(/\s+/);
  const others = wanted.split(/\s+/);
  if (words.length !== others.length) return false;
  return words.every((word, index) => sameWord(word, others[index] as string, tolerance));
}

const NUMBER = /^[+-]?(\d+(\.\d*)?|\.\d+)(e[+-]?\d{1,4})?$/i;
const WHOLE = /^[+-]?\d+$/;

function sameWord(got: string, wanted: string, tolerance: number): boolean {
  if (got === wanted) return true;
  if (!NUMBER.test(got) || !NUMBER.test(wanted)) return false;
  if (decimal(got) === decimal(wanted)) return true;
  if (tolerance === 0 || (WHOLE.test(got) && WHOLE.test(wanted))) return false;
  const [a, b] = [Number(got), Number(wanted)];
  return Math.abs(a - b) <= tolerance * Math.max(1, Math.abs(b));
}

/** One way of writing for each value: digits without zeros around them, and where the point is. */
function decimal(text: string): string {
  const [mantissa = "", exponent = "0"] = text.toLowerCase().split("e");
  const sign = mantissa.startsWith("-") ? "-" : "";
  const [whole = "", fraction = ""] = mantissa.replace(/^[+-]/, "").split(".");
  const digits = trimStartOf(whole + fraction, "0");
  const significant = trimEndOf(digits, "0");
  if (significant === "") return "0";
  const point = Number(exponent) - fraction.length + (digits.length - significant.length);
  return `${sign}${significant}e${point}`;
}

/**
 * Whether a function returned what is expected, both as `parseExactJson` reads them. Sets that wrap each expected value in a list of one
 * are met by the value itself.
 */
export function sameValue(got: unknown, expected: unknown): boolean {
  if (equal(got, expected)) return true;
  return Array.isArray(expected) && expected.length === 1 && equal(got, expected[0]);
}

function equal(a: unknown, b: unknown): boolean {
  if (typeof a === "number" && typeof b === "number") {
    return a === b || (!(Number.isInteger(a) && Number.isInteger(b)) && close(a, b));
  }
  // A whole number beyond 2^53 beside what was not written as one, such as 1e16.
  if (typeof a === "bigint" && typeof b === "number") return Number(a) === b;
  if (typeof a === "number" && typeof b === "bigint") return a === Number(b);
  if (Array.isArray(a) && Array.isArray(b)) {
    return a.length === b.length && a.every((item, index) => equal(item, b[index]));
  }
  if (isObject(a) && isObject(b)) {
    const keys = Object.keys(a);
    if (keys.length !== Object.keys(b).length) return false;
    return keys.every((key) => Object.hasOwn(b, key) && equal(a[key], b[key]));
  }
  return a === b;
}

const CLOSE = 1e-9;

function close(a: number, b: number): boolean {
  return Math.abs(a - b) <= CLOSE * Math.max(1, Math.abs(b));
}
