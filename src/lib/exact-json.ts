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

/** JSON that stays the text that it is, within values that are none: its numbers and the order of its keys. */
export class ExactJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** What `parseExactJson` has read, as JSON again; so is what holds `ExactJson`. */
export function exactJson(value: unknown): string {
  const texts: string[] = [];
  const mark = `exact-${crypto.randomUUID()}-`;
  const shown = JSON.stringify(value, (_key, each) => {
    if (typeof each === "bigint") return rawJSON(String(each));
    return each instanceof ExactJson ? `${mark}${texts.push(each.text) - 1}` : each;
  });
  if (texts.length === 0) return shown;
  return shown.replace(new RegExp(`"${mark}(\\d+)"`, "g"), (_, at) => texts[Number(at)] as string);
}
