import { floatText } from "./text.ts";
import { Dict, Float, Lazy, Markup, TemplateError, typeName, type Value, View } from "./values.ts";

export type DumpOptions = {
  ensureAscii: boolean;
  /** What one level is indented with; null for one line. */
  indent: string | null;
  itemSeparator: string;
  keySeparator: string;
  sortKeys: boolean;
};

/** What `json.dumps` does by itself, but for the letters beyond ASCII. */
export const ONE_LINE: DumpOptions = {
  ensureAscii: false,
  indent: null,
  itemSeparator: ", ",
  keySeparator: ": ",
  sortKeys: false,
};

/** `json.dumps(value, …)`. */
export function dumps(value: Value, options: DumpOptions): string {
  const write = (item: Value, margin: string): string => {
    if (item === null) return "null";
    if (typeof item === "string") return jsonString(item, options.ensureAscii);
    if (item instanceof Markup) return jsonString(item.text, options.ensureAscii);
    if (typeof item === "boolean" || typeof item === "number" || typeof item === "bigint") {
      return String(item);
    }
    if (item instanceof Float) return jsonFloat(item.value);
    const inner = options.indent === null ? "" : `${margin}${options.indent}`;
    if (Array.isArray(item) && !(item instanceof View)) {
      const parts = Array.from(item, (one) => write(one, inner));
      return enclosed("[", parts, "]", margin, options);
    }
    if (item instanceof Dict) {
      const entries = [...item.entries()].map(([key, one]) => [keyText(key), one] as const);
      const ordered = options.sortKeys ? entries.toSorted(byKey) : entries;
      const parts = ordered.map(([key, one]) => {
        const shown = jsonString(key, options.ensureAscii);
        return shown + options.keySeparator + write(one, inner);
      });
      return enclosed("{", parts, "}", margin, options);
    }
    const name = item instanceof Lazy ? item.kind : typeName(item);
    throw new TemplateError(
      `Object of type ${name === "undefined" ? "Undefined" : name} is not JSON serializable`,
    );
  };
  return write(value, "");
}

function byKey([a]: readonly [string, Value], [b]: readonly [string, Value]): number {
  const [left, right] = [[...a], [...b]];
  for (const [at, char] of left.entries()) {
    const other = right[at];
    if (other === undefined) return 1;
    const order = (char.codePointAt(0) ?? 0) - (other.codePointAt(0) ?? 0);
    if (order !== 0) return order;
  }
  return left.length - right.length;
}

function enclosed(
  open: string,
  parts: string[],
  close: string,
  margin: string,
  { indent, itemSeparator }: DumpOptions,
): string {
  if (parts.length === 0) return open + close;
  if (indent === null) return open + parts.join(itemSeparator) + close;
  const inner = `\n${margin}${indent}`;
  return `${open}${inner}${parts.join(itemSeparator + inner)}\n${margin}${close}`;
}

function keyText(key: Value): string {
  if (typeof key === "string") return key;
  if (key === null) return "null";
  if (key instanceof Float) return jsonFloat(key.value);
  if (typeof key === "boolean" || typeof key === "number" || typeof key === "bigint") {
    return String(key);
  }
  throw new TemplateError(`keys must be str, int, float, bool or None, not ${typeName(key)}`);
}

function jsonFloat(value: number): string {
  if (Number.isNaN(value)) return "NaN";
  if (!Number.isFinite(value)) return value < 0 ? "-Infinity" : "Infinity";
  return floatText(value);
}

function jsonString(text: string, ensureAscii: boolean): string {
  const shown = JSON.stringify(text);
  if (!ensureAscii) return shown;
  return shown.replace(/[\u007f-\uffff]/g, (char) => {
    return char === "\u007f" ? char : `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}
