import { percentFormat } from "./format-text.ts";
import { textOf } from "./text.ts";
import {
  Float,
  isNumber,
  Markup,
  numberOf,
  plain,
  TemplateError,
  Tuple,
  typeName,
  Undefined,
  type Value,
  View,
} from "./values.ts";

export type Operator = "+" | "-" | "*" | "/" | "//" | "%" | "**";

/** `a + b` and the like. */
export function compute(operator: Operator, a: Value, b: Value): Value {
  if (operator === "+" && typeof a === "string" && typeof b === "string") return a + b;
  for (const side of [a, b]) if (side instanceof Undefined) side.fail();
  if (a instanceof Markup || b instanceof Markup) return onMarkup(operator, a, b);
  if (isNumber(a) && isNumber(b)) return numeric(operator, a, b);
  if (operator === "%" && typeof a === "string") return percentFormat(a, b);
  if (operator === "+" && isList(a) && isList(b) && a instanceof Tuple === b instanceof Tuple) {
    return a instanceof Tuple ? Tuple.of(...a, ...b) : [...a, ...b];
  }
  if (operator === "*" && isNumber(b) && !(b instanceof Float)) return repeated(a, numberOf(b));
  if (operator === "*" && isNumber(a) && !(a instanceof Float)) return repeated(b, numberOf(a));
  return refuse(operator, a, b);
}

function onMarkup(operator: Operator, a: Value, b: Value): Value {
  const areTexts = [a, b].every((side) => side instanceof Markup || typeof side === "string");
  if (operator === "+" && areTexts) return new Markup(escaped(a).text + escaped(b).text);
  if (operator === "*") return new Markup(compute("*", plain(a), plain(b)) as string);
  if (operator !== "%" || !(a instanceof Markup)) return compute(operator, plain(a), plain(b));
  throw new TemplateError("formatting the result of safe or escape is not supported");
}

const ENTITIES: Record<string, string> = {
  ...{ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&#34;", "'": "&#39;" },
};

/** Any value as text that HTML shows as it is. */
export function escaped(value: Value): Markup {
  if (value instanceof Markup) return value;
  return new Markup(textOf(value).replace(/[&<>"']/g, (char) => ENTITIES[char] as string));
}

function isList(value: Value): value is Value[] {
  return Array.isArray(value) && !(value instanceof View);
}

function refuse(operator: Operator, a: Value, b: Value): never {
  const types = `'${typeName(a)}' and '${typeName(b)}'`;
  if (operator === "+" && typeof a === "string") {
    throw new TemplateError(`can only concatenate str (not "${typeName(b)}") to str`);
  }
  throw new TemplateError(`unsupported operand type(s) for ${operator}: ${types}`);
}

const MAX_REPEATED = 10_000_000;

function repeated(value: Value, times: number): Value {
  const count = Math.max(0, times);
  if (typeof value === "string") {
    if (value.length * count > MAX_REPEATED) throw new TemplateError("the text would be too long");
    return value.repeat(count);
  }
  if (!isList(value)) return refuse("*", value, times);
  if (value.length * count > MAX_REPEATED) throw new TemplateError("the list would be too long");
  const items = Array.from({ length: count }, () => [...value]).flat();
  return value instanceof Tuple ? Tuple.of(...items) : items;
}

type Numeric = number | bigint | boolean | Float;

function numeric(operator: Operator, a: Numeric, b: Numeric): Value {
  const isFloat = a instanceof Float || b instanceof Float;
  const [x, y] = [numberOf(a), numberOf(b)];
  if ((operator === "/" || operator === "//" || operator === "%") && y === 0) {
    throw new TemplateError(operator === "%" ? "modulo by zero" : "division by zero");
  }
  if (isFloat || operator === "/" || (operator === "**" && y < 0)) {
    return new Float(onFloats(operator, x, y));
  }
  const quick = operator === "**" || operator === "//" ? Number.NaN : onInts(operator, x, y);
  if (Number.isSafeInteger(quick) && Number.isSafeInteger(x) && Number.isSafeInteger(y))
    return quick;
  return narrowed(onBigInts(operator, BigInt(a as number), BigInt(b as number)));
}

export function narrowed(value: bigint): number | bigint {
  const near = Number(value);
  return Number.isSafeInteger(near) ? near : value;
}

function onInts(operator: Operator, x: number, y: number): number {
  if (operator === "+") return x + y;
  if (operator === "-") return x - y;
  return operator === "*" ? x * y : ((x % y) + y) % y;
}

function onFloats(operator: Operator, x: number, y: number): number {
  if (operator === "/") return x / y;
  if (operator === "//") return Math.floor(x / y);
  if (operator === "**") return x ** y;
  return onInts(operator, x, y);
}

const MAX_POWER = 10_000n;

function onBigInts(operator: Operator, x: bigint, y: bigint): bigint {
  if (operator === "+") return x + y;
  if (operator === "-") return x - y;
  if (operator === "*") return x * y;
  if (operator === "**") {
    if (y > MAX_POWER) throw new TemplateError("the power is too large");
    return x ** y;
  }
  const remainder = ((x % y) + y) % y;
  return operator === "%" ? remainder : (x - remainder) / y;
}

/** `-value`. */
export function negated(value: Value): Value {
  if (value instanceof Undefined) value.fail();
  if (value instanceof Float) return new Float(-value.value);
  if (typeof value === "bigint") return narrowed(-value);
  if (isNumber(value)) return 0 - Number(value);
  throw new TemplateError(`bad operand type for unary -: '${typeName(value)}'`);
}
