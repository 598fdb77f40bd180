import { trimEndOf, trimStartOf } from "../lib/trim-chars.ts";

/**
 * Whether a program printed what is expected: as many lines, each equal without the blanks around it, or equal word
 * by word where numbers may be written differently (`1.0` and `1`, `1e3` and `1000`). With `tolerance`, a number may also
 * differ by that much, absolutely or relatively, from one that is not whole.
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
  if (tolerance === 0 || WHOLE.test(wanted)) return false;
  const [a, b] = [Number(got), Number(wanted)];
  if (!Number.isFinite(a) || !Number.isFinite(b)) return false;
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
