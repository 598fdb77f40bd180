import { floatText, textOf } from "./text.ts";
import { Float, isNumber, numberOf, TemplateError, typeName, type Value } from "./values.ts";

/** What `%` and `format` say about one value; `%` knows no alignment but left and right. */
export type Spec = {
  fill: string;
  align: "<" | ">" | "^" | "=" | "";
  sign: "+" | "-" | " ";
  alternate: boolean;
  width: number;
  grouping: string;
  precision: number | null;
  type: string;
};

const INT_BASES: Record<string, [number, string]> = {
  ...{ x: [16, "0x"], X: [16, "0X"], o: [8, "0o"], b: [2, "0b"], d: [10, ""], n: [10, ""] },
};

/** One value as its specification says. */
export function formatValue(value: Value, spec: Spec): string {
  const { type } = spec;
  const asText = type === "s" || (type === "" && !isNumber(value)) || type === "c";
  if (asText || (type === "" && typeof value === "boolean")) {
    if (type === "s" && typeof value !== "string") throw unknownCode(type, value);
    const text = type === "c" ? String.fromCodePoint(numberOf(value)) : textOf(value);
    const cut = spec.precision === null ? text : [...text].slice(0, spec.precision).join("");
    return padded(cut, "", spec, "<");
  }
  if (!isNumber(value)) throw unknownCode(type, value);
  const isInt = !(value instanceof Float);
  const negative = isInt ? Number(value) < 0 : value.value < 0 || Object.is(value.value, -0);
  const sign = negative ? "-" : spec.sign === "-" ? "" : spec.sign;
  if (isInt && (type === "" || type in INT_BASES)) {
    const [base, prefix] = INT_BASES[type || "d"] as [number, string];
    const digits = BigInt(value as number)
      .toString(base)
      .replace("-", "");
    const shown = type === "X" ? digits.toUpperCase() : digits;
    return padded(grouped(shown, spec), sign + (spec.alternate ? prefix : ""), spec, ">");
  }
  const digits = floatDigits(Math.abs(numberOf(value)), spec);
  return padded(grouped(digits, spec), sign, spec, ">");
}

function unknownCode(type: string, value: Value): TemplateError {
  const object = `object of type '${typeName(value)}'`;
  return new TemplateError(`Unknown format code '${type}' for ${object}`);
}

function floatDigits(value: number, { type, precision }: Spec): string {
  if (!Number.isFinite(value)) return floatText(value);
  if (type === "") return precision === null ? floatText(value) : general(value, precision);
  const places = precision ?? 6;
  const kind = type.toLowerCase();
  if (kind === "%") return `${fixed(value * 100, places)}%`;
  if (kind === "f") return fixed(value, places);
  const text = kind === "e" ? exponent(value.toExponential(places)) : general(value, places);
  return type === kind ? text : text.toUpperCase();
}

function exponent(text: string): string {
  return text.replace(/e([+-])(\d)$/, "e$10$2");
}

function general(value: number, given: number): string {
  const precision = given === 0 ? 1 : given;
  const [, power = "0"] = value.toExponential(precision - 1).split("e");
  const trim = (text: string) => (text.includes(".") ? text.replace(/\.?0+(?=$|e)/, "") : text);
  if (Number(power) >= -4 && Number(power) < precision) {
    return trim(fixed(value, precision - 1 - Number(power)));
  }
  return exponent(trim(value.toExponential(precision - 1)));
}

/** Rounds the exact value, half to even, as C does. `toFixed` does the first from 1e21 on no more. */
export function fixed(value: number, places: number): string {
  if (value >= 1e21) return BigInt(value) + (places > 0 ? `.${"0".repeat(places)}` : "");
  const up = value.toFixed(places);
  // All digits that a double has behind those places.
  const rest = value.toFixed(100).slice(value.toFixed(100).indexOf(".") + 1 + places);
  const isTie = /^50*$/.test(rest);
  if (!isTie || Number(up.at(-1)) % 2 === 0) return up;
  return (Number(up) - 10 ** -places).toFixed(places);
}

function grouped(digits: string, { grouping }: Spec): string {
  if (grouping === "") return digits;
  const [whole = "", ...rest] = digits.split(".");
  const parts = [whole.replace(/\B(?=(\d{3})+(?!\d))/g, grouping), ...rest];
  return parts.join(".");
}

function padded(body: string, prefix: string, spec: Spec, usual: "<" | ">"): string {
  const missing = spec.width - [...body].length - prefix.length;
  if (missing <= 0) return prefix + body;
  const align = spec.align || usual;
  const fill = (count: number) => (spec.fill || " ").repeat(count);
  if (align === "=") return prefix + fill(missing) + body;
  if (align === "<") return prefix + body + fill(missing);
  if (align === ">") return fill(missing) + prefix + body;
  const left = Math.floor(missing / 2);
  return fill(left) + prefix + body + fill(missing - left);
}
