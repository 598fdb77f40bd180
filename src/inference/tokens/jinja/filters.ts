import { bound, type Filter } from "./arguments.ts";
import { escaped } from "./arithmetic.ts";
import { getAttribute, slice } from "./attributes.ts";
import { percentFormat } from "./format-text.ts";
import { dumps } from "./json-text.ts";
import { fixed } from "./number-format.ts";
import { SEQUENCE_FILTERS } from "./sequence-filters.ts";
import { capitalize, STRING_METHODS, strip } from "./string-methods.ts";
import { textOf } from "./text.ts";
import {
  Dict,
  Float,
  isNumber,
  itemsOf,
  Lazy,
  lengthOf,
  Markup,
  type Named,
  numberOf,
  TemplateError,
  truth,
  tuple,
  typeName,
  Undefined,
  type Value,
} from "./values.ts";

const DEFAULT: Filter = (value, positional, named) => {
  const [other = "", boolean = false] = bound(["default_value", "boolean"], positional, named);
  return value instanceof Undefined || (truth(boolean) && !truth(value)) ? other : value;
};

const TOJSON: Filter = (value, positional, named) => {
  const names = ["ensure_ascii", "indent", "separators", "sort_keys"];
  const [ascii = false, indent = null, separators = null, sortKeys = false] = bound(
    names,
    positional,
    named,
  );
  const margin =
    indent === null || typeof indent === "string" ? indent : " ".repeat(numberOf(indent));
  const [itemSeparator, keySeparator] =
    separators === null
      ? [margin === null ? ", " : ",", ": "]
      : [...itemsOf(separators)].map((one) => textOf(one));
  return dumps(value, {
    ensureAscii: truth(ascii),
    indent: margin,
    itemSeparator: itemSeparator ?? ", ",
    keySeparator: keySeparator ?? ": ",
    sortKeys: truth(sortKeys),
  });
};

const INDENT: Filter = (value, positional, named) => {
  const [width = 4, first = false, blank = false] = bound(
    ["width", "first", "blank"],
    positional,
    named,
  );
  const margin = typeof width === "string" ? width : " ".repeat(numberOf(width));
  const lines = STRING_METHODS.splitlines?.(`${textOf(value)}\n`, [], new Map()) as string[];
  const [head = "", ...rest] = lines;
  const shown = rest.map((line) =>
    line !== "" || truth(blank) ? `\n${margin}${line}` : `\n${line}`,
  );
  return (truth(first) ? margin : "") + head + shown.join("");
};

const INT: Filter = (value, positional, named) => {
  const [other = 0, base = 10] = bound(["default", "base"], positional, named);
  if (value instanceof Float)
    return Number.isFinite(value.value)
      ? toInt(String(BigInt(Math.trunc(value.value))), 10)
      : other;
  if (isNumber(value)) return typeof value === "boolean" ? Number(value) : value;
  if (typeof value !== "string") return other;
  const whole = toInt(strip(value), numberOf(base));
  if (whole !== null) return whole;
  const near = toFloat(value);
  return near === null || !Number.isFinite(near)
    ? other
    : toInt(String(BigInt(Math.trunc(near))), 10);
};

function toInt(text: string, base: number): Value {
  const digits = /^([+-]?)(?:0[xX](?=.))?([0-9a-zA-Z]+(?:_[0-9a-zA-Z]+)*)$/.exec(text);
  if (!digits) return null;
  const shown = (digits[2] as string).replaceAll("_", "").toLowerCase();
  const isValid = [...shown].every((char) => Number.parseInt(char, 36) < base);
  if (!isValid || (base !== 16 && /0[xX]/.test(text))) return null;
  let value = 0n;
  for (const char of shown) value = value * BigInt(base) + BigInt(Number.parseInt(char, 36));
  const signed = digits[1] === "-" ? -value : value;
  return Number.isSafeInteger(Number(signed)) ? Number(signed) : signed;
}

function toFloat(text: string): number | null {
  const shown = strip(text).toLowerCase();
  const special = /^([+-]?)(inf|infinity|nan)$/.exec(shown);
  if (special) return special[2] === "nan" ? Number.NaN : special[1] === "-" ? -Infinity : Infinity;
  const isValid = /^[+-]?(\d+(_\d+)*\.?(\d+(_\d+)*)?|\.\d+)(e[+-]?\d+)?$/.test(shown);
  return isValid ? Number(shown.replaceAll("_", "")) : null;
}

const FLOAT: Filter = (value, positional, named) => {
  const [other = new Float(0)] = bound(["default"], positional, named);
  if (isNumber(value)) return new Float(numberOf(value));
  const near = typeof value === "string" ? toFloat(value) : null;
  return near === null ? other : new Float(near);
};

const ROUND: Filter = (value, positional, named) => {
  const [precision = 0, method = "common"] = bound(["precision", "method"], positional, named);
  if (!isNumber(value))
    throw new TemplateError(`type ${typeName(value)} doesn't define __round__ method`);
  if (method !== "common" && method !== "ceil" && method !== "floor") {
    throw new TemplateError("method must be common, ceil or floor");
  }
  const places = numberOf(precision);
  if (method === "common" && !(value instanceof Float) && places >= 0) return value;
  const number = numberOf(value);
  const scale = 10 ** places;
  if (method !== "common") return new Float(Math[method](number * scale) / scale);
  if (places < 0) return new Float(Math.round(number * scale) / scale);
  return new Float(Math.sign(number) * Number(fixed(Math.abs(number), places)));
};

const TITLE: Filter = (value) => {
  const words = textOf(value).split(/([-\s({[<]+)/);
  return words.map((word) => word.slice(0, 1).toUpperCase() + word.slice(1).toLowerCase()).join("");
};

const TRUNCATE: Filter = (value, positional, named) => {
  const names = ["length", "killwords", "end", "leeway"];
  const [length = 255, kill = false, end = "...", leeway = 5] = bound(names, positional, named);
  const text = textOf(value);
  const most = numberOf(length);
  if (lengthOf(text) <= most + numberOf(leeway)) return text;
  const kept = textOf(slice(text, 0, most - lengthOf(textOf(end)), null));
  if (truth(kill)) return kept + textOf(end);
  const words = kept.split(" ");
  return (words.length > 1 ? words.slice(0, -1).join(" ") : kept) + textOf(end);
};

const LENGTH: Filter = (value) => lengthOf(value);

/** Jinja's filters, with the `tojson` that transformers has in the place of Jinja's own. */
export const FILTERS: Record<string, Filter> = {
  ...SEQUENCE_FILTERS,
  ...{ default: DEFAULT, d: DEFAULT, tojson: TOJSON, indent: INDENT, int: INT, float: FLOAT },
  ...{ round: ROUND, title: TITLE, truncate: TRUNCATE, length: LENGTH, count: LENGTH },
  string: (value) => textOf(value),
  safe: (value) => new Markup(textOf(value)),
  ...{ escape: escaped, e: escaped, forceescape: (value) => escaped(textOf(value)) },
  upper: (value) => textOf(value).toUpperCase(),
  lower: (value) => textOf(value).toLowerCase(),
  capitalize: (value) => capitalize(textOf(value)),
  trim(value, positional, named) {
    const [chars = null] = bound(["chars"], positional, named);
    return strip(textOf(value), chars as string | null);
  },
  replace(value, positional, named) {
    const [from, to, count = null] = bound(["old", "new", "count"], positional, named);
    const limit = count === null ? [] : [count];
    return STRING_METHODS.replace?.(textOf(value), [textOf(from), textOf(to), ...limit], named);
  },
  center(value, positional, named) {
    const [width = 80] = bound(["width"], positional, named);
    return STRING_METHODS.center?.(textOf(value), [width], named);
  },
  format: (value, positional, named) =>
    percentFormat(textOf(value), named.size > 0 ? dictOf(named) : tuple(...positional)),
  attr: (value, [name]) => {
    const found = getAttribute(value, textOf(name));
    // It asks for attributes only, and an item is none.
    return value instanceof Dict && typeof found !== "function"
      ? new Undefined(`'dict object' has no attribute '${textOf(name)}'`)
      : found;
  },
  abs(value) {
    if (value instanceof Float) return new Float(Math.abs(value.value));
    if (typeof value === "bigint") return value < 0n ? -value : value;
    if (isNumber(value)) return Math.abs(Number(value));
    throw new TemplateError(`bad operand type for abs(): '${typeName(value)}'`);
  },
  wordcount: (value) => textOf(value).match(/[\p{L}\p{N}_]+/gu)?.length ?? 0,
  reverse: (value) =>
    typeof value === "string"
      ? [...value].reverse().join("")
      : new Lazy([...itemsOf(value)].reverse(), "list_reverseiterator"),
};

export function dictOf(named: Named): Dict {
  const dict = new Dict();
  for (const [name, value] of named) dict.set(name, value);
  return dict;
}
