import { braceFormat } from "./format-text.ts";
import {
  hasWideChars,
  itemsOf,
  lengthOf,
  type Named,
  numberOf,
  TemplateError,
  Tuple,
  typeName,
  type Value,
} from "./values.ts";

/** What Python takes for white space. */
const SPACES = "\t-\r\u001c-\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000";
const LEADING = new RegExp(`^[${SPACES}]+`);
const SPACE = new RegExp(`[${SPACES}]`);
const SPACE_RUN = new RegExp(`[${SPACES}]+`);
const ALL_SPACE = new RegExp(`^[${SPACES}]+$`);
const LINE_ENDS = "\n\r\v\f\u001c-\u001e\u0085\u2028\u2029";
const LINES = new RegExp(`[^${LINE_ENDS}]*(?:\\r\\n|[${LINE_ENDS}]|$)`, "g");
const LAST_LINE_END = new RegExp(`(?:\\r\\n|[${LINE_ENDS}])$`);

export function stripLeft(text: string, chars: string | null = null): string {
  if (chars === null) return text.replace(LEADING, "");
  const unwanted = new Set(chars);
  let at = 0;
  for (const char of text) {
    if (!unwanted.has(char)) break;
    at += char.length;
  }
  return text.slice(at);
}

/** By hand: a pattern for the end of a text looks at every run of spaces in it. */
export function stripRight(text: string, chars: string | null = null): string {
  let end = text.length;
  if (chars === null) {
    while (end > 0 && SPACE.test(text.charAt(end - 1))) end -= 1;
    return text.slice(0, end);
  }
  const unwanted = new Set(chars);
  while (end > 0) {
    const wide = end > 1 && text.charCodeAt(end - 1) >= 0xdc00 && text.charCodeAt(end - 1) < 0xe000;
    const char = text.slice(end - (wide ? 2 : 1), end);
    if (!unwanted.has(char)) break;
    end -= char.length;
  }
  return text.slice(0, end);
}

export function strip(text: string, chars: string | null = null): string {
  return stripLeft(stripRight(text, chars), chars);
}

function split(text: string, separator: string | null, most: number): string[] {
  if (separator !== null) {
    if (separator === "") throw new TemplateError("empty separator");
    const parts = text.split(separator);
    if (most < 0 || parts.length <= most + 1) return parts;
    return [...parts.slice(0, most), parts.slice(most).join(separator)];
  }
  if (most < 0) return strip(text) === "" ? [] : strip(text).split(SPACE_RUN);
  const parts: string[] = [];
  let rest = stripLeft(text);
  while (rest !== "" && parts.length < most) {
    const end = rest.search(SPACE);
    if (end < 0) break;
    parts.push(rest.slice(0, end));
    rest = stripLeft(rest.slice(end));
  }
  return rest === ""
    ? parts
    : [...parts, most === 0 || parts.length === most ? rest : stripRight(rest)];
}

function splitRight(text: string, separator: string | null, most: number): string[] {
  if (most < 0) return split(text, separator, most);
  const mirror = (given: string) => [...given].reverse().join("");
  const parts = split(mirror(text), separator === null ? null : mirror(separator), most);
  return parts.map(mirror).reverse();
}

function splitLines(text: string, keepEnds: boolean): string[] {
  const lines = [...text.matchAll(LINES)].map(([line]) => line).filter((line) => line !== "");
  return keepEnds ? lines : lines.map((line) => line.replace(LAST_LINE_END, ""));
}

/** Where `find` and the like begin and end, in halves of characters. */
function bounds(text: string, [start, end]: Value[]): [number, number] {
  const wide = hasWideChars(text);
  const at = (given: Value, other: number) => {
    if (given === undefined || given === null) return other;
    const length = lengthOf(text);
    const index = numberOf(given) < 0 ? Math.max(0, length + numberOf(given)) : numberOf(given);
    return wide ? [...text].slice(0, index).join("").length : Math.min(index, length);
  };
  return [at(start, 0), at(end, text.length)];
}

function find(text: string, part: Value, range: Value[], last = false): number {
  const [start, end] = bounds(text, range);
  const within = text.slice(start, end);
  const wanted = need(part);
  const found = last ? within.lastIndexOf(wanted) : within.indexOf(wanted);
  return found < 0 ? -1 : lengthOf(text.slice(0, start + found));
}

function need(value: Value): string {
  if (typeof value === "string") return value;
  throw new TemplateError(`must be str, not ${typeName(value)}`);
}

function hasAffix(text: string, affix: Value, range: Value[], test: "startsWith" | "endsWith") {
  const [start, end] = bounds(text, range);
  const within = range.length > 0 ? text.slice(start, end) : text;
  const wanted = affix instanceof Tuple ? [...affix] : [affix];
  return wanted.some((one) => within[test](need(one)));
}

function index(text: string, part: Value, range: Value[], last = false): number {
  const found = find(text, part, range, last);
  if (found < 0) throw new TemplateError("substring not found");
  return found;
}

function partition(text: string, separator: string, last: boolean): Tuple {
  const at = last ? text.lastIndexOf(separator) : text.indexOf(separator);
  if (at < 0) return last ? Tuple.of("", "", text) : Tuple.of(text, "", "");
  return Tuple.of(text.slice(0, at), separator, text.slice(at + separator.length));
}

function replace(text: string, from: string, to: string, most = -1): string {
  if (most < 0) return text.replaceAll(from, () => to);
  const parts = from === "" ? ["", ...text, ""] : text.split(from);
  const done = parts.slice(0, most + 1).join(to);
  return parts.length <= most + 1 ? done : [done, ...parts.slice(most + 1)].join(from);
}

export function capitalize(text: string): string {
  const [first = "", ...rest] = text;
  return first.toUpperCase() + rest.join("").toLowerCase();
}

function pad(
  text: string,
  width: Value,
  fill: Value = " ",
  side: "left" | "right" | "both",
): string {
  const missing = Math.max(0, numberOf(width) - lengthOf(text));
  const half = Math.floor(missing / 2) + (missing & numberOf(width) & 1);
  const left = side === "left" ? missing : side === "both" ? half : 0;
  return need(fill).repeat(left) + text + need(fill).repeat(missing - left);
}

const whole = (text: string, pattern: RegExp) => text !== "" && pattern.test(text);
const optional = (value: Value) => (value === undefined || value === null ? null : need(value));
const most = (value: Value) => (value === undefined ? -1 : numberOf(value));

type Method = (text: string, positional: Value[], named: Named) => Value;

export const STRING_METHODS: Record<string, Method> = {
  strip: (text, [chars]) => strip(text, optional(chars)),
  lstrip: (text, [chars]) => stripLeft(text, optional(chars)),
  rstrip: (text, [chars]) => stripRight(text, optional(chars)),
  split: (text, [by, limit], named) =>
    split(text, optional(by ?? named.get("sep")), most(limit ?? named.get("maxsplit"))),
  rsplit: (text, [by, limit], named) =>
    splitRight(text, optional(by ?? named.get("sep")), most(limit ?? named.get("maxsplit"))),
  splitlines: (text, [keep], named) => splitLines(text, Boolean(keep ?? named.get("keepends"))),
  startswith: (text, [affix, ...range]) => hasAffix(text, affix, range, "startsWith"),
  endswith: (text, [affix, ...range]) => hasAffix(text, affix, range, "endsWith"),
  replace: (text, [from, to, limit], named) =>
    replace(text, need(from), need(to), most(limit ?? named.get("count"))),
  upper: (text) => text.toUpperCase(),
  lower: (text) => text.toLowerCase(),
  casefold: (text) => text.toLowerCase().replaceAll("ß", "ss"),
  capitalize: (text) => capitalize(text),
  title: (text) => text.replace(/\p{L}+/gu, capitalize),
  swapcase: (text) =>
    Array.from(text, (char) =>
      char === char.toUpperCase() ? char.toLowerCase() : char.toUpperCase(),
    ).join(""),
  find: (text, [part, ...range]) => find(text, part, range),
  rfind: (text, [part, ...range]) => find(text, part, range, true),
  index: (text, [part, ...range]) => index(text, part, range),
  rindex: (text, [part, ...range]) => index(text, part, range, true),
  count(text, [part, ...range]) {
    const [start, end] = bounds(text, range);
    const wanted = need(part);
    const within = text.slice(start, end);
    return wanted === "" ? lengthOf(within) + 1 : within.split(wanted).length - 1;
  },
  join(text, [items]) {
    const parts = [...itemsOf(items)].map((item, at) => {
      if (typeof item === "string") return item;
      const found = `${typeName(item)} found`;
      throw new TemplateError(`sequence item ${at}: expected str instance, ${found}`);
    });
    return parts.join(text);
  },
  format: (text, positional, named) => braceFormat(text, positional, named),
  removeprefix: (text, [affix]) =>
    text.startsWith(need(affix)) ? text.slice(need(affix).length) : text,
  removesuffix: (text, [affix]) =>
    affix !== "" && text.endsWith(need(affix)) ? text.slice(0, -need(affix).length) : text,
  partition: (text, [separator]) => partition(text, need(separator), false),
  rpartition: (text, [separator]) => partition(text, need(separator), true),
  zfill(text, [width]) {
    const sign = /^[+-]/.exec(text)?.[0] ?? "";
    return sign + pad(text.slice(sign.length), numberOf(width) - sign.length, "0", "left");
  },
  ljust: (text, [width, fill]) => pad(text, width, fill, "right"),
  rjust: (text, [width, fill]) => pad(text, width, fill, "left"),
  center: (text, [width, fill]) => pad(text, width, fill, "both"),
  isspace: (text) => ALL_SPACE.test(text),
  isdigit: (text) => whole(text, /^[\p{Nd}\u00b2\u00b3\u00b9\u2070-\u2079\u2080-\u2089]+$/u),
  isdecimal: (text) => whole(text, /^\p{Nd}+$/u),
  isnumeric: (text) => whole(text, /^\p{N}+$/u),
  isalpha: (text) => whole(text, /^\p{L}+$/u),
  isalnum: (text) => whole(text, /^[\p{L}\p{N}]+$/u),
  isascii: (text) => !/[\u0080-\uffff]/.test(text),
  isidentifier: (text) => /^[\p{L}_][\p{L}\p{N}_]*$/u.test(text),
  isupper: (text) => text !== text.toLowerCase() && text === text.toUpperCase(),
  islower: (text) => text !== text.toUpperCase() && text === text.toLowerCase(),
  istitle: (text) => /\p{L}/u.test(text) && text === text.replace(/\p{L}+/gu, capitalize),
  expandtabs: (text, [size]) =>
    text.replace(/[^\n\r]*/g, (line) => expandTabs(line, size === undefined ? 8 : numberOf(size))),
};

function expandTabs(line: string, size: number): string {
  const parts = line.split("\t");
  return parts
    .map((part, at) =>
      at === parts.length - 1 ? part : part.padEnd((Math.floor(part.length / size) + 1) * size),
    )
    .join("");
}

export function stringMethod(text: string, name: string): ((p: Value[], n: Named) => Value) | null {
  const method = Object.hasOwn(STRING_METHODS, name) ? STRING_METHODS[name] : undefined;
  return method ? (positional, named) => method(text, positional, named) : null;
}
