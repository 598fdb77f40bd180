import { getAttribute, getItem } from "./attributes.ts";
import { formatValue, type Spec } from "./number-format.ts";
import { reprOf, textOf } from "./text.ts";
import {
  Dict,
  Float,
  isNumber,
  type Named,
  numberOf,
  TemplateError,
  Tuple,
  typeName,
  type Value,
} from "./values.ts";

const PERCENT =
  /%(?:\((?<name>[^)]*)\))?(?<flags>[-+ #0]*)(?<width>\d+|\*)?(?:\.(?<precision>\d+|\*))?[hlL]?(?<type>.)/gs;

/** `format % values`. */
export function percentFormat(format: string, values: Value): string {
  const list = values instanceof Tuple ? values : Tuple.of(values);
  let used = 0;
  const next = (): Value => {
    if (used >= list.length) throw new TemplateError("not enough arguments for format string");
    return list[used++];
  };
  const shown = format.replace(PERCENT, (...match) => {
    const { name, flags, width, precision, type } = match.at(-1) as Record<string, string>;
    if (type === "%") return "%";
    const given = (text: string | undefined) => (text === "*" ? numberOf(next()) : Number(text));
    const spec: Spec = {
      fill: flags?.includes("0") && !flags.includes("-") ? "0" : " ",
      align: flags?.includes("-") ? "<" : flags?.includes("0") ? "=" : ">",
      sign: flags?.includes("+") ? "+" : flags?.includes(" ") ? " " : "-",
      alternate: flags?.includes("#") ?? false,
      width: width === undefined ? 0 : given(width),
      grouping: "",
      precision: precision === undefined ? null : given(precision),
      type: type ?? "",
    };
    if (name !== undefined && !(values instanceof Dict)) {
      throw new TemplateError("format requires a mapping");
    }
    return percentValue(name === undefined ? next() : getItem(values, name), spec);
  });
  if (
    used < list.length &&
    !(values instanceof Dict) &&
    !(used === 0 && Array.isArray(values) && !(values instanceof Tuple))
  ) {
    throw new TemplateError("not all arguments converted during string formatting");
  }
  return shown;
}

function percentValue(value: Value, spec: Spec): string {
  const { type } = spec;
  const asText = { ...spec, fill: " ", align: spec.align === "=" ? (">" as const) : spec.align };
  if (type === "s") return formatValue(textOf(value), asText);
  if (type === "r" || type === "a") return formatValue(reprOf(value), { ...asText, type: "s" });
  if (type === "c" && typeof value === "string")
    return formatValue(value, { ...asText, type: "s" });
  if (!"diuoxXeEfFgGc".includes(type)) {
    throw new TemplateError(`unsupported format character '${type}'`);
  }
  if (!isNumber(value)) {
    const need = "diu".includes(type) ? "a real number" : "real number";
    throw new TemplateError(`%${type} format: ${need} is required, not ${typeName(value)}`);
  }
  const isWhole = "diuoxXc".includes(type);
  const number = isWhole && value instanceof Float ? Math.trunc(value.value) : value;
  const given = isWhole ? number : new Float(numberOf(number));
  const named = "diu".includes(type) ? "d" : type;
  if (!isWhole || spec.precision === null) return formatValue(given, { ...spec, type: named });
  // The precision of an int is its least number of digits.
  const digits = formatValue(given, { ...spec, width: 0, precision: null, type: named });
  const sign = /^[-+ ]/.exec(digits)?.[0] ?? "";
  const long = sign + digits.slice(sign.length).padStart(spec.precision, "0");
  return formatValue(long, { ...asText, precision: null, type: "s" });
}

const FIELD = /\{\{|\}\}|\{([^{}!:]*)(?:!([rsa]))?(?::((?:[^{}]|\{[^{}]*\})*))?\}|[{}]/g;
const SPEC = /^(?:(.)?([<>=^]))?([-+ ])?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?([a-zA-Z%])?$/su;

/** `format.format(…)`. */
export function braceFormat(format: string, positional: readonly Value[], named: Named): string {
  let automatic = 0;
  const fieldValue = (field: string): Value => {
    const [first = "", ...rest] = field.split(/(?=[.[])/);
    const index = first === "" ? automatic++ : Number(first);
    let value = Number.isInteger(index) ? positional[index] : named.get(first);
    if (value === undefined) {
      throw new TemplateError(`format has no value for "${first === "" ? index : first}"`);
    }
    for (const part of rest) {
      const key = part.replace(/^[.[]|\]$/g, "");
      const item = /^\d+$/.test(key) ? Number(key) : key;
      value = part.startsWith(".") ? getAttribute(value, key) : getItem(value, item);
    }
    return value;
  };
  return format.replace(FIELD, (whole, field?: string, conversion?: string, given?: string) => {
    if (whole === "{{" || whole === "}}") return whole.charAt(0);
    if (field === undefined)
      throw new TemplateError(`Single '${whole}' encountered in format string`);
    const value = fieldValue(field);
    const spec = (given ?? "").replace(/\{([^{}]*)\}/g, (_, inner: string) =>
      textOf(fieldValue(inner)),
    );
    const shown =
      conversion === undefined ? value : conversion === "s" ? textOf(value) : reprOf(value);
    return spec === "" ? textOf(shown) : formatValue(shown, parseSpec(spec));
  });
}

function parseSpec(text: string): Spec {
  const found = SPEC.exec(text);
  if (!found) throw new TemplateError(`Invalid format specifier '${text}'`);
  const [, fill, align, sign, alternate, zero, width, grouping, precision, type] = found;
  return {
    fill: fill ?? (zero ? "0" : " "),
    align: (align ?? (zero ? "=" : "")) as Spec["align"],
    sign: (sign ?? "-") as Spec["sign"],
    alternate: alternate !== undefined,
    width: Number(width ?? 0),
    grouping: grouping ?? "",
    precision: precision === undefined ? null : Number(precision),
    type: type ?? "",
  };
}
