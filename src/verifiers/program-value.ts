import { exactJson, parseExactJson } from "../lib/exact-json.ts";
import { isObject } from "../lib/is-object.ts";

/** As far as floating-point numbers may differ, absolutely or relatively, from one that is not whole. */
const CLOSE = 1e-9;

/** Strings as they are, so that only what stands between them is looked at. */
const STRING_OR_FLOAT = /"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g;

/** JSON as Python writes it, with the floats that JSON has no words for. @throws SyntaxError */
export function readPythonJson(text: string): unknown {
  try {
    return parseExactJson(text);
  } catch {
    const said = text.replace(STRING_OR_FLOAT, (found) =>
      found.startsWith('"') ? found : `{"__float__":"${found}"}`,
    );
    return parseExactJson(said);
  }
}

/**
 * Whether a function returned what is expected, both as `readPythonJson` reads them: as Python compares, with tuples as
 * lists, and floats that are not whole as close as rounding leaves them. Datasets that wrap each expected value in a
 * list of one are met by the value itself.
 */
export function sameValue(got: unknown, expected: unknown): boolean {
  if (equal(got, expected)) return true;
  return Array.isArray(expected) && expected.length === 1 && equal(got, expected[0]);
}

function equal(got: unknown, expected: unknown): boolean {
  if (isNumber(got) && isNumber(expected)) return sameNumber(numeric(got), numeric(expected));
  if (Array.isArray(expected)) {
    const items = Array.isArray(got) ? got : null;
    if (items === null) return sameSet(got, expected);
    return items.length === expected.length && items.every((item, i) => equal(item, expected[i]));
  }
  if (isObject(got) && isObject(expected)) {
    const keys = Object.keys(got);
    if (keys.length !== Object.keys(expected).length) return false;
    return keys.every((key) => Object.hasOwn(expected, key) && equal(got[key], expected[key]));
  }
  return got === expected;
}

/** A set's order says nothing: `{"__set__": […]}` beside a list of the same values. */
function sameSet(got: unknown, expected: unknown[]): boolean {
  if (!isObject(got) || !Array.isArray(got.__set__)) return false;
  if (got.__set__.length !== expected.length) return false;
  const [items, wanted] = [got.__set__, expected].map((values) =>
    values
      .map((value) => [exactJson(value === true ? 1 : value === false ? 0 : value), value] as const)
      .toSorted(([a], [b]) => order(a, b)),
  );
  return (items ?? []).every(([, item], index) => equal(item, wanted?.[index]?.[1]));
}

function order(a: string, b: string): number {
  return a < b ? -1 : Number(a > b);
}

/** To Python `True` is 1. */
function isNumber(value: unknown): value is number | bigint | boolean {
  return typeof value === "number" || typeof value === "bigint" || typeof value === "boolean";
}

function numeric(value: number | bigint | boolean): number | bigint {
  return typeof value === "boolean" ? Number(value) : value;
}

function sameNumber(got: number | bigint, expected: number | bigint): boolean {
  // What is too long to be read is equal to nothing.
  if (!isReadable(got) || !isReadable(expected)) return false;
  if (typeof got === "number" && typeof expected === "number") {
    return got === expected || (!Number.isInteger(expected) && close(got, expected));
  }
  return exact(got) !== null && exact(got) === exact(expected);
}

function isReadable(value: number | bigint): boolean {
  return typeof value === "bigint" || Number.isFinite(value);
}

/** A whole number with every digit that its double stands for. */
function exact(value: number | bigint): bigint | null {
  if (typeof value === "bigint") return value;
  return Number.isInteger(value) ? BigInt(value) : null;
}

function close(a: number, b: number): boolean {
  return Math.abs(a - b) <= CLOSE * Math.max(1, Math.abs(b));
}
