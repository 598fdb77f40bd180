import type { Filter } from "./arguments.ts";
import { contains, equal, order } from "./compare.ts";
import { textOf } from "./text.ts";
import {
  Dict,
  Float,
  isNumber,
  Lazy,
  Markup,
  numberOf,
  plain,
  Undefined,
  type Value,
  View,
} from "./values.ts";

const isInteger = (value: Value) => typeof value === "number" || typeof value === "bigint";
const isEqual: Filter = (value, [other]) => equal(value, other);
const isDifferent: Filter = (value, [other]) => !equal(value, other);
const ordered = (operator: string, holds: (way: number) => boolean): Filter => {
  return (value, [other]) => holds(order(value, other, operator));
};
const above = ordered(">", (way) => way > 0);
const atLeast = ordered(">=", (way) => way >= 0);
const below = ordered("<", (way) => way < 0);
const atMost = ordered("<=", (way) => way <= 0);

/** What may stand behind `is`. */
export const TESTS: Record<string, Filter> = {
  defined: (value) => !(value instanceof Undefined),
  undefined: (value) => value instanceof Undefined,
  none: (value) => value === null,
  boolean: (value) => typeof value === "boolean",
  true: (value) => value === true,
  false: (value) => value === false,
  integer: isInteger,
  float: (value) => value instanceof Float,
  number: isNumber,
  string: (value) => typeof plain(value) === "string",
  mapping: (value) => value instanceof Dict,
  iterable: (value) =>
    typeof plain(value) === "string" ||
    Array.isArray(value) ||
    [Dict, Lazy, Undefined].some((kind) => value instanceof kind),
  sequence: (value) =>
    typeof plain(value) === "string" ||
    (Array.isArray(value) && !(value instanceof View && value.kind !== "range")) ||
    value instanceof Dict ||
    value instanceof Undefined,
  callable: (value) => typeof value === "function",
  sameas: (value, [other]) => value === other,
  in: (value, [container]) => contains(container, value),
  even: (value) => numberOf(value) % 2 === 0,
  odd: (value) => Math.abs(numberOf(value)) % 2 === 1,
  divisibleby: (value, [by]) => numberOf(value) % numberOf(by) === 0,
  lower: (value) => textOf(value) === textOf(value).toLowerCase() && /\p{L}/u.test(textOf(value)),
  upper: (value) => textOf(value) === textOf(value).toUpperCase() && /\p{L}/u.test(textOf(value)),
  escaped: (value) => value instanceof Markup,
  ...{ eq: isEqual, equalto: isEqual, "==": isEqual, ne: isDifferent, "!=": isDifferent },
  ...{ gt: above, greaterthan: above, ">": above, ge: atLeast, ">=": atLeast },
  ...{ lt: below, lessthan: below, "<": below, le: atMost, "<=": atMost },
};

/** Of Jinja's own, which no chat template is known to use: refused when the template is read. */
export const OTHER_FILTERS = new Set(
  "filesizeformat pprint random slice striptags urlencode urlize wordwrap xmlattr".split(" "),
);
