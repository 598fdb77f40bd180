import {
  Dict,
  Float,
  Lazy,
  Markup,
  Tuple,
  typeName,
  Undefined,
  type Value,
  View,
} from "./values.ts";

/** `str(value)`. */
export function textOf(value: Value): string {
  if (typeof value === "string") return value;
  if (value instanceof Markup) return value.text;
  return value instanceof Undefined ? "" : reprOf(value);
}

/** `repr(value)`. */
export function reprOf(value: Value): string {
  if (value === null) return "None";
  if (typeof value === "string") return quoted(value);
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number" || typeof value === "bigint") return String(value);
  if (value instanceof Float) return floatText(value.value);
  if (value instanceof View) {
    return value.kind === "range"
      ? `range(0, ${value.length})`
      : `${value.kind}(${listText(value)})`;
  }
  if (value instanceof Tuple) {
    return value.length === 1 ? `(${reprOf(value[0])},)` : `(${listText(value).slice(1, -1)})`;
  }
  if (Array.isArray(value)) return listText(value);
  if (value instanceof Dict) {
    const entries = [...value.entries()].map(([key, item]) => `${reprOf(key)}: ${reprOf(item)}`);
    return `{${entries.join(", ")}}`;
  }
  if (value instanceof Undefined) return "Undefined";
  if (value instanceof Markup) return `Markup(${quoted(value.text)})`;
  const kind = value instanceof Lazy ? value.kind : typeName(value);
  return `<${kind} object>`;
}

function listText(items: readonly Value[]): string {
  return `[${Array.from(items, reprOf).join(", ")}]`;
}

/** As `repr` of a float writes it: the shortest digits, an exponent below 1e-4 and from 1e16 on. */
export function floatText(value: number): string {
  if (Number.isNaN(value)) return "nan";
  if (!Number.isFinite(value)) return value < 0 ? "-inf" : "inf";
  if (Object.is(value, -0)) return "-0.0";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) {
    return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2");
  }
  const text = String(value);
  return Number.isInteger(value) ? `${text}.0` : text;
}

const ESCAPES: Record<string, string> = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\\": "\\\\" };
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Zl}\p{Zp}\p{Cn}\\]|[\p{Zs}--\u0020]/gv;

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replace(UNPRINTABLE, (char) => {
    return ESCAPES[char] ?? escapeOf(char.codePointAt(0) ?? 0);
  });
  return quote + escaped.replaceAll(quote, `\\${quote}`) + quote;
}

function escapeOf(code: number): string {
  const hex = code.toString(16);
  if (code < 0x100) return `\\x${hex.padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${hex.padStart(4, "0")}` : `\\U${hex.padStart(8, "0")}`;
}
