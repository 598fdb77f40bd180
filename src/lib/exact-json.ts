/** A run of digits that a double may not hold. */
const LONG = /\d{16}/;

/**
 * A whole number that a double may not hold, outside of strings, and no key. Longer ones Python does not print either,
 * and reading them takes time that grows with their square.
 */
const LONG_NUMBER = /(?<![\d.eE+-])-?[1-9]\d{15,4299}(?![\d.eE+-]|[ \t\n\r]*:)/g;

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
  const mark = crypto.randomUUID();
  const marked = markLong(text, mark);
  if (marked === text) return JSON.parse(text);
  const top = { value: parseMarked(marked, text) };
  unmark(top, mark, keep);
  return top.value;
}

/** A reviver of `JSON.parse` would cost fifty times the parsing, for one long number among millions of others. */
function markLong(text: string, mark: string): string {
  const parts: string[] = [];
  for (let at = 0; at < text.length; ) {
    const quote = text.indexOf('"', at);
    const end = quote === -1 ? text.length : quote;
    const between = text.slice(at, end);
    parts.push(end - at < 16 ? between : between.replace(LONG_NUMBER, `"${mark}$&"`));
    at = quote === -1 ? end : endOfString(text, quote);
    parts.push(text.slice(end, at));
  }
  return parts.join("");
}

/** Where the string ends that begins at `quote`: behind a quote that an even number of backslashes stands before. */
function endOfString(text: string, quote: number): number {
  for (let from = quote + 1; ; ) {
    const end = text.indexOf('"', from);
    if (end === -1) return text.length;
    let before = end;
    while (before > from && text[before - 1] === "\\") before--;
    if ((end - before) % 2 === 0) return end + 1;
    from = end + 1;
  }
}

/** What is wrong is told of the text that was given. */
function parseMarked(marked: string, text: string): unknown {
  try {
    return JSON.parse(marked);
  } catch {
    return JSON.parse(text);
  }
}

/** Whatever the depth, so without recursion. */
function unmark(top: object, mark: string, keep: (digits: string) => unknown): void {
  const open: object[] = [top];
  for (let holder = open.pop(); holder !== undefined; holder = open.pop()) {
    const look = (name: string | number, value: unknown) => {
      if (typeof value === "object" && value !== null) open.push(value);
      if (typeof value !== "string" || !value.startsWith(mark)) return;
      const digits = value.slice(mark.length);
      const whole = Number(digits);
      const kept = Number.isSafeInteger(whole) ? whole : keep(digits);
      // An assignment to `__proto__` would be none.
      Object.defineProperty(holder, name, { value: kept });
    };
    if (Array.isArray(holder)) for (const [index, value] of holder.entries()) look(index, value);
    else for (const name in holder) look(name, (holder as Record<string, unknown>)[name]);
  }
}

/** Whether a number of the text may have more digits than a double holds. */
export function hasLongNumber(text: string): boolean {
  return LONG.test(text);
}

/** Whether it stands for a number's digits. */
export function isDigits(value: unknown): boolean {
  return isRawJSON(value);
}

const sources = new WeakMap<object, string>();

/** Remembers the JSON text that an object was read from, with its numbers and the order of its keys. */
export function keepSource<T extends object>(value: T, source: string): T {
  sources.set(value, source);
  return value;
}

/** The JSON text of an object that `keepSource` was given. */
export function sourceOf(value: unknown): string | undefined {
  return typeof value === "object" && value !== null ? sources.get(value) : undefined;
}

/** What `parseExactJson` has read, as JSON again; objects whose text is kept are that text. */
export function exactJson(value: unknown): string {
  const texts: string[] = [];
  const mark = `exact-${crypto.randomUUID()}-`;
  const shown = JSON.stringify(value, (_key, each) => {
    if (typeof each === "bigint") return rawJSON(String(each));
    const source = sourceOf(each);
    return source === undefined ? each : `${mark}${texts.push(source) - 1}`;
  });
  if (texts.length === 0) return shown;
  return shown.replace(new RegExp(`"${mark}(\\d+)"`, "g"), (_, at) => texts[Number(at)] as string);
}
