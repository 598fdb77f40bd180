/** A run of digits that a double may not hold. */
const LONG = /\d{16}/;

/** Longer ones Python does not print either, and reading them takes time that grows with their square. */
const WHOLE = /^-?\d{16,4300}$/;

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;
const parseWithSource = JSON.parse as (text: string, reviver: Reviver) => unknown;
const { rawJSON, isRawJSON } = JSON as unknown as {
  rawJSON(text: string): unknown;
  isRawJSON(value: unknown): boolean;
};

/**
 * JSON in which whole numbers beyond 2^53 keep their digits, as BigInt; `JSON.parse` would round them, so that wrong
 * answers equal right ones.
 *
 * @throws SyntaxError
 */
export function parseExactJson(text: string): unknown {
  return parseWith(text, BigInt);
}

/**
 * JSON on its way to a text again: `JSON.stringify` writes the same digits, whoever calls it. Nobody can compute with
 * such a number; who wants to reads the text with `parseExactJson`.
 *
 * @throws SyntaxError
 */
export function parseKeepingDigits(text: string): unknown {
  return parseWith(text, rawJSON);
}

function parseWith(text: string, keep: (digits: string) => unknown): unknown {
  if (!LONG.test(text)) return JSON.parse(text);
  return parseWithSource(text, (_key, value, { source = "" }) =>
    typeof value === "number" && !Number.isSafeInteger(value) && WHOLE.test(source)
      ? keep(source)
      : value,
  );
}

/** A value of `parseKeepingDigits`, with plain numbers; what has no long number in it is itself. */
export function withPlainNumbers(value: unknown, text: string): unknown {
  return LONG.test(text) ? JSON.parse(text) : value;
}

/** Whether it stands for a number's digits. */
export function isDigits(value: unknown): boolean {
  return isRawJSON(value);
}

/** What `parseExactJson` has read, as JSON again. */
export function exactJson(value: unknown): string {
  return JSON.stringify(value, (_key, each) =>
    typeof each === "bigint" ? rawJSON(String(each)) : each,
  );
}
