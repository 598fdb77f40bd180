import { equal } from "./compare.ts";
import { STRING_METHODS, stringMethod } from "./string-methods.ts";
import { textOf } from "./text.ts";
import {
  type Callable,
  Dict,
  Float,
  hasWideChars,
  isNumber,
  Markup,
  type Named,
  Namespace,
  numberOf,
  plain,
  TemplateError,
  Tuple,
  typeName,
  Undefined,
  type Value,
  View,
  view,
} from "./values.ts";

type Method<T> = (value: T, positional: Value[], named: Named) => Value;

const DICT_METHODS: Record<string, Method<Dict>> = {
  items: (dict) =>
    view(
      Array.from(dict.entries(), (pair) => Tuple.of(...pair)),
      "dict_items",
    ),
  keys: (dict) => view(dict.keys(), "dict_keys"),
  values: (dict) => view(dict.values(), "dict_values"),
  get: (dict, [key, other = null], named) =>
    dict.has(key) ? dict.get(key) : (named.get("default") ?? other),
  copy: (dict) => dict,
};
const LIST_METHODS: Record<string, Method<Value[]>> = {
  index(list, [wanted]) {
    const at = list.findIndex((item) => equal(item, wanted));
    if (at < 0) throw new TemplateError("the value is not in list");
    return at;
  },
  count: (list, [wanted]) => list.filter((item) => equal(item, wanted)).length,
  copy: (list) => list,
};
const FLOAT_METHODS: Record<string, Method<Float>> = {
  is_integer: ({ value }) => Number.isInteger(value),
};
const INT_METHODS: Record<string, Method<number | bigint>> = {
  bit_length: (value) => BigInt(value).toString(2).replace("-", "").length,
  is_integer: () => true,
};

/** Python's that no chat template is known to call: refused when the template is read. */
export const UNSUPPORTED_METHODS = new Set(
  "encode decode translate maketrans isprintable format_map to_bytes hex as_integer_ratio".split(
    " ",
  ),
);

/** Python's, which change what they are called on or reach into Python; the sandbox of transformers has none of them. */
const UNSAFE: Record<string, string[]> = {
  dict: ["clear", "pop", "popitem", "setdefault", "update", "fromkeys"],
  list: ["append", "clear", "extend", "insert", "pop", "remove", "reverse", "sort"],
};

const DICT_NAMES = new Set([...Object.keys(DICT_METHODS), ...(UNSAFE.dict ?? [])]);

function methodsOf(value: Value): Record<string, Method<never>> {
  if (typeof value === "string") return STRING_METHODS as Record<string, Method<never>>;
  if (value instanceof Dict) return DICT_METHODS as Record<string, Method<never>>;
  if (value instanceof View) return {};
  if (Array.isArray(value)) return LIST_METHODS as Record<string, Method<never>>;
  if (value instanceof Float) return FLOAT_METHODS as Record<string, Method<never>>;
  return typeof value === "number" || typeof value === "bigint"
    ? (INT_METHODS as Record<string, Method<never>>)
    : {};
}

function method(value: Value, name: string): Callable | null {
  if (typeof value === "string") return stringMethod(value, name);
  const methods = methodsOf(value);
  const found = Object.hasOwn(methods, name) ? methods[name] : undefined;
  if (found) return (positional, named) => found(value as never, positional, named);
  return null;
}

function unsafe(value: Value, name: string): Undefined | null {
  const type = typeName(value);
  const isUnsafe = UNSAFE[type]?.includes(name) || /^__\w+__$/.test(name);
  if (!isUnsafe) return null;
  return new Undefined(`access to attribute '${name}' of '${type}' object is unsafe.`);
}

/** `value.name`: a method wins over an item of the same name. */
export function getAttribute(value: Value, name: string): Value {
  if (value instanceof Dict) {
    // Nearly all names are an item's.
    if (!DICT_NAMES.has(name) && !name.startsWith("__")) {
      const found = value.get(name);
      return found === undefined ? missing(value, name) : found;
    }
  } else if (value instanceof Namespace) {
    const found = value.fields.get(name);
    return found === undefined ? missing(value, name) : found;
  } else if (value instanceof Fields) return value.get(name) ?? missing(value, name);
  else if (value instanceof Undefined) value.fail();
  else if (value instanceof Markup) return getAttribute(value.text, name);
  const found = method(value, name) ?? unsafe(value, name);
  if (found) return found;
  return missing(value, name);
}

/** `value[key]`: an item wins over a method of the same name. */
export function getItem(value: Value, key: Value): Value {
  if (value instanceof Dict) {
    const found = value.get(key);
    if (found !== undefined) return found;
  } else if (typeof key !== "string" && isNumber(key) && !(key instanceof Float)) {
    const found = itemAt(value, numberOf(key));
    if (found !== undefined) return found;
  }
  if (value instanceof Undefined) value.fail();
  if (value instanceof Markup || key instanceof Markup) return getItem(plain(value), plain(key));
  if (typeof key !== "string") return missing(value, textOf(key), true);
  if (value instanceof Namespace || value instanceof Fields) return getAttribute(value, key);
  return method(value, key) ?? unsafe(value, key) ?? missing(value, key);
}

function itemAt(value: Value, at: number): Value {
  if (Array.isArray(value)) {
    return value instanceof View && value.kind !== "range" ? undefined : value.at(at);
  }
  if (typeof value !== "string") return undefined;
  return hasWideChars(value) ? [...value].at(at) : value.at(at);
}

function missing(value: Value, name: string, isItem = false): Undefined {
  const type = value instanceof Dict ? "dict object" : `${typeName(value)} object`;
  const what = isItem ? `element ${name}` : `attribute '${name}'`;
  return new Undefined(value === null ? `'None' has no ${what}` : `'${type}' has no ${what}`);
}

/** `value[start:stop:step]`. */
export function slice(value: Value, start: Value, stop: Value, step: Value): Value {
  if (value instanceof Undefined) value.fail();
  if (value instanceof Markup) return slice(value.text, start, stop, step);
  const isText = typeof value === "string";
  if (!isText && (!Array.isArray(value) || (value instanceof View && value.kind !== "range"))) {
    return new Undefined(`'${typeName(value)}' object can't be sliced`);
  }
  const by = index(step) ?? 1;
  if (isText && by === 1 && !hasWideChars(value))
    return value.slice(index(start) ?? 0, index(stop));
  const items: readonly Value[] = isText ? [...value] : value;
  if (by === 0) throw new TemplateError("slice step cannot be zero");
  const taken =
    by === 1
      ? items.slice(index(start) ?? 0, index(stop))
      : stepped(items, index(start), index(stop), by);
  if (isText) return taken.join("");
  if (value instanceof Tuple) return Tuple.of(...taken);
  return value instanceof View ? view(taken, value.kind) : Array.from(taken);
}

function index(value: Value): number | undefined {
  if (value === null || value === undefined) return undefined;
  if (isNumber(value) && !(value instanceof Float)) return numberOf(value);
  throw new TemplateError("slice indices must be integers or None or have an __index__ method");
}

function stepped(items: readonly Value[], start?: number, stop?: number, by = 1): Value[] {
  const { length } = items;
  const clamp = (at: number) => {
    const from = at < 0 ? at + length : at;
    return by > 0 ? Math.min(Math.max(from, 0), length) : Math.min(Math.max(from, -1), length - 1);
  };
  const first = start === undefined ? (by > 0 ? 0 : length - 1) : clamp(start);
  const end = stop === undefined ? (by > 0 ? length : -1) : clamp(stop);
  const taken: Value[] = [];
  for (let at = first; by > 0 ? at < end : at > end; at += by) taken.push(items[at]);
  return taken;
}

/** An object that has nothing but attributes, such as `loop`. */
export abstract class Fields {
  readonly call: Callable | null = null;
  abstract get(name: string): Value;
}
