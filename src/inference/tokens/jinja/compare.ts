import {
  Dict,
  Float,
  isNumber,
  itemsOf,
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

/** `a == b`. */
export function equal(a: Value, b: Value): boolean {
  if (a === b) return true;
  if (typeof a === "string" && typeof b === "string") return false;
  if (isNumber(a) && isNumber(b)) {
    if (a instanceof Float || b instanceof Float) return numberOf(a) === numberOf(b);
    return BigInt(a) === BigInt(b);
  }
  if (Array.isArray(a) && Array.isArray(b)) {
    const sameKind =
      a instanceof Tuple === b instanceof Tuple && a instanceof View === b instanceof View;
    return sameKind && a.length === b.length && a.every((item, at) => equal(item, b[at]));
  }
  if (a instanceof Dict && b instanceof Dict) {
    return (
      a.size === b.size &&
      [...a.entries()].every(([key, item]) => b.has(key) && equal(item, b.get(key)))
    );
  }
  if (a instanceof Markup || b instanceof Markup) return equal(plain(a), plain(b));
  return a instanceof Undefined && b instanceof Undefined;
}

/** Below 0, 0 or above 0, as `a < b`, `a == b` or `a > b`; NaN for numbers of which one is NaN. */
export function order(a: Value, b: Value, operator = "<"): number {
  if (typeof a === "number" && typeof b === "number") return a - b;
  if (typeof a === "string" && typeof b === "string") return textOrder(a, b);
  if (isNumber(a) && isNumber(b)) {
    const exact = typeof a === "bigint" || typeof b === "bigint";
    const [left, right] = exact ? [a, b].map(exactly) : [numberOf(a), numberOf(b)];
    if (Number.isNaN(left) || Number.isNaN(right)) return Number.NaN;
    return (left as number) < (right as number) ? -1 : (left as number) > (right as number) ? 1 : 0;
  }
  if (Array.isArray(a) && Array.isArray(b) && a instanceof Tuple === b instanceof Tuple) {
    const at = a.findIndex((item, index) => index >= b.length || !equal(item, b[index]));
    return at < 0 ? a.length - b.length : at >= b.length ? 1 : order(a[at], b[at], operator);
  }
  if (a instanceof Markup || b instanceof Markup) return order(plain(a), plain(b), operator);
  for (const side of [a, b]) if (side instanceof Undefined) side.fail();
  const types = `'${typeName(a)}' and '${typeName(b)}'`;
  throw new TemplateError(`'${operator}' not supported between instances of ${types}`);
}

function exactly(value: number | bigint | boolean | Float): number | bigint {
  return value instanceof Float ? value.value : BigInt(value);
}

/** Python orders by characters, JavaScript by halves of them. */
function textOrder(a: string, b: string): number {
  if (a === b) return 0;
  let at = 0;
  while (at < a.length && a[at] === b[at]) at += 1;
  const wide = at > 0 && /[\ud800-\udbff]/.test(a.charAt(at - 1)) ? at - 1 : at;
  return (a.codePointAt(wide) ?? -1) - (b.codePointAt(wide) ?? -1);
}

/** `value in container`. */
export function contains(container: Value, value: Value): boolean {
  if (container instanceof Markup || value instanceof Markup) {
    return contains(plain(container), plain(value));
  }
  if (typeof container === "string") {
    if (typeof value === "string") return container.includes(value);
    throw new TemplateError(
      `'in <string>' requires string as left operand, not ${typeName(value)}`,
    );
  }
  if (container instanceof Dict) return container.has(value);
  if (Array.isArray(container)) return container.some((item) => equal(item, value));
  if (container === null || typeof container !== "object") {
    throw new TemplateError(`argument of type '${typeName(container)}' is not iterable`);
  }
  for (const item of itemsOf(container)) if (equal(item, value)) return true;
  return false;
}
