/** A run of digits that a double may not hold. */
const LONG = /\d{16}/;

/** Longer ones Python does not print either, and reading them takes time that grows with their square. */
const WHOLE = /^-?\d{16,4300}$/;

type Reviver = (key: string, value: unknown, context: { source?: string }) => unknown;
const parseWithSource = JSON.parse as (text: string, reviver: Reviver) => unknown;
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/**
 * JSON in which whole numbers beyond 2^53 keep their digits, as BigInt; `JSON.parse` would round them, so that wrong
 * answers equal right ones.
 *
 * @throws SyntaxError
 */
export function parseExactJson(text: string): unknown {
  if (!LONG.test(text)) return JSON.parse(text);
  return parseWithSource(text, (_key, value, { source = "" }) =>
    typeof value === "number" && !Number.isSafeInteger(value) && WHOLE.test(source)
      ? BigInt(source)
      : value,
  );
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
