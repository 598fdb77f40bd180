import type { MathJsonExpression } from "@cortex-js/compute-engine/latex-syntax";
import { integerOf, parseDecimal, type Rational, rational, toDouble } from "./rational.ts";

/**
 * An expression without what spelling leaves open: products and sums are flat and sorted, and a difference is a sum.
 * Nothing is worked out, so `2+3` stays a sum, and `x\cdot x` is no power.
 */
export type Form =
  | { kind: "number"; value: Rational; key: string; size: number }
  | { kind: "symbol"; key: string; size: number }
  | { kind: "sum" | "product"; parts: Form[]; key: string; size: number }
  | { kind: "power"; base: Form; exponent: Form; key: string; size: number }
  | { kind: "call"; head: string; parts: Form[]; key: string; size: number };

const MAX_NUMBER_BITS = 2n ** 256n;

/**
 * With `folded`, numbers in one sum or product and powers of one base are put together, and quotients and roots are
 * powers: then a copy that hides behind `\cdot 1` or `(x+1)(x+1)` is the formula that it copies.
 */
export function formOf(tree: MathJsonExpression, folded = false): Form {
  if (typeof tree === "number") return numberForm(String(tree));
  if (typeof tree === "string") return { kind: "symbol", key: symbolKey(tree), size: 1 };
  if (!Array.isArray(tree)) {
    return typeof tree === "object" && tree !== null && "num" in tree
      ? numberForm(tree.num)
      : symbolForm("?");
  }
  const [head, ...operands] = tree as [string, ...MathJsonExpression[]];
  const parts = operands.map((operand) => formOf(operand, folded));
  const [a, b] = parts;
  if (a === undefined) return symbolForm(head);
  switch (head) {
    case "Delimiter":
      return a;
    case "Add":
      return sum(parts, folded);
    case "Subtract":
      return b === undefined ? negated(a, folded) : sum([a, negated(b, folded)], folded);
    case "Negate":
      return negated(a, folded);
    case "Multiply":
    case "InvisibleOperator":
      return product(parts, folded);
    case "Divide":
    case "Rational":
      return b === undefined ? a : quotient(a, b, folded);
    case "Power":
      return b === undefined ? a : power(a, b, folded);
    case "Sqrt":
      return folded ? power(a, fromRational(rational(1n, 2n)), folded) : call(head, [a]);
    case "Root":
      if (b === undefined) return a;
      return folded ? power(a, quotient(numberForm("1"), b, folded), folded) : call(head, parts);
    case "Abs":
      return folded ? a : call(head, parts);
    case "Exp":
      return power(symbolForm("e"), a, folded);
    default:
      if (/^[A-Za-z]$/.test(head) && b === undefined) return product([symbolForm(head), a], folded);
      return call(head, parts);
  }
}

function numberForm(text: string): Form {
  const value = parseDecimal(text);
  return value === null ? symbolForm(text.slice(0, 40)) : fromRational(value);
}

function fromRational(value: Rational): Form {
  const whole = integerOf(value);
  if (whole !== null) return { kind: "number", value: rational(whole), key: `${whole}`, size: 1 };
  const factor = greatest(value.n < 0n ? -value.n : value.n, value.d);
  const key = `${value.n / factor}/${value.d / factor}`;
  return { kind: "number", value: rational(value.n / factor, value.d / factor), key, size: 1 };
}

function greatest(a: bigint, b: bigint): bigint {
  let [left, right] = [a, b];
  while (right !== 0n) [left, right] = [right, left % right];
  return left;
}

function symbolKey(name: string): string {
  return name === "ExponentialE" ? "e" : name === "ImaginaryUnit" ? "i" : name;
}

function symbolForm(name: string): Form {
  return { kind: "symbol", key: symbolKey(name), size: 1 };
}

function call(head: string, parts: Form[]): Form {
  return { kind: "call", head, parts, ...described(head, parts) };
}

function described(head: string, parts: Form[]): { key: string; size: number } {
  const key = `(${head} ${parts.map((part) => part.key).join(" ")})`;
  return { key, size: parts.reduce((total, part) => total + part.size, 1) };
}

function negated(form: Form, folded: boolean): Form {
  if (form.kind === "number" && (folded || form.value.n >= 0n)) {
    return fromRational(rational(-form.value.n, form.value.d));
  }
  if (form.kind === "product") return product(withSign(form.parts), folded);
  if (form.kind === "call" && form.head === "Fraction") {
    const [top, ...below] = form.parts as [Form, ...Form[]];
    return call("Fraction", [negated(top, folded), ...below]);
  }
  return product([numberForm("-1"), form], folded);
}

function quotient(top: Form, bottom: Form, folded: boolean): Form {
  if (folded) return product([top, power(bottom, numberForm("-1"), folded)], folded);
  if (top.kind === "number" && bottom.kind === "number") return call("Fraction", [top, bottom]);
  const inverse = call("Inverse", [bottom]);
  return top.key === "1" ? inverse : product([top, inverse], folded);
}

function sum(parts: Form[], folded: boolean): Form {
  const flat = parts
    .flatMap((part) => (part.kind === "sum" ? part.parts : [part]))
    .filter(({ key }) => key !== "0");
  const put = folded ? together(flat, (a, b) => rational(a.n * b.d + b.n * a.d, a.d * b.d)) : flat;
  const [only] = put;
  if (only === undefined) return numberForm("0");
  if (put.length === 1) return only;
  const sorted = [...put].sort(byKey);
  return { kind: "sum", parts: sorted, ...described("+", sorted) };
}

function product(parts: Form[], folded: boolean): Form {
  const flat = parts
    .flatMap((part) => (part.kind === "product" ? part.parts : [part]))
    .filter(({ key }) => key !== "1");
  const put = folded
    ? powersTogether(together(flat, (a, b) => rational(a.n * b.n, a.d * b.d)))
    : flat;
  const [only] = put;
  if (only === undefined) return numberForm("1");
  if (put.length === 1) return only;
  const sorted = [...put].sort(byKey);
  return { kind: "product", parts: sorted, ...described("*", sorted) };
}

/** A sign belongs to the first number, where there is one. */
function withSign(parts: Form[]): Form[] {
  const at = parts.findIndex(({ kind, key }) => kind === "number" || key.startsWith("(Fraction"));
  if (at < 0) return [numberForm("-1"), ...parts];
  return parts.map((part, place) => (place === at ? negated(part, false) : part));
}

function together(parts: Form[], combine: (a: Rational, b: Rational) => Rational): Form[] {
  const numbers = parts.flatMap((part) => (part.kind === "number" ? [part.value] : []));
  if (numbers.length < 2) return parts;
  const all = fromRational(numbers.reduce(combine));
  return [all, ...parts.filter(({ kind }) => kind !== "number")].filter(({ key }) => key !== "1");
}

/** `(x+1)(x+1)` is a power. */
function powersTogether(parts: Form[]): Form[] {
  const byBase = new Map<string, Form[]>();
  for (const part of parts) {
    const base = part.kind === "power" && part.exponent.kind === "number" ? part.base : part;
    const key = part.kind === "number" ? `number ${byBase.size}` : base.key;
    byBase.set(key, [...(byBase.get(key) ?? []), part]);
  }
  return [...byBase.values()].flatMap((same) => {
    const [first] = same as [Form];
    if (same.length === 1) return same;
    const base = first.kind === "power" && first.exponent.kind === "number" ? first.base : first;
    const exponents = same.map((part) =>
      part.kind === "power" && part.exponent.kind === "number" ? part.exponent : numberForm("1"),
    );
    return [power(base, sum(exponents, true), true)].filter(({ key }) => key !== "1");
  });
}

function power(base: Form, exponent: Form, folded: boolean): Form {
  if (!folded) return { kind: "power", base, exponent, ...described("^", [base, exponent]) };
  if (exponent.key === "1") return base;
  if (base.kind === "power" && base.exponent.kind === "number" && exponent.kind === "number") {
    const { value: a } = base.exponent;
    const { value: b } = exponent;
    return power(base.base, fromRational(rational(a.n * b.n, a.d * b.d)), folded);
  }
  if (base.kind === "number" && exponent.kind === "number") {
    const whole = integerOf(exponent.value);
    if (whole === -1n && base.value.n !== 0n)
      return fromRational(rational(base.value.d, base.value.n));
    const { n, d } = base.value;
    if (
      whole !== null &&
      whole >= 0n &&
      whole <= 16n &&
      n < MAX_NUMBER_BITS &&
      d < MAX_NUMBER_BITS
    ) {
      return fromRational(rational(n ** whole, d ** whole));
    }
  }
  return { kind: "power", base, exponent, ...described("^", [base, exponent]) };
}

function byKey(a: Form, b: Form): number {
  return a.key < b.key ? -1 : a.key > b.key ? 1 : 0;
}

const ARITHMETIC = new Set(["Fraction", "Inverse", "Sqrt", "Root", "Square"]);

/** The functions that a form calls: `\sin`, `\binom`, `!`. Arithmetic is none. */
function callsOf(form: Form): Set<string> {
  if (form.kind === "call")
    return new Set([form.head, ...form.parts.flatMap((part) => [...callsOf(part)])]);
  if (form.kind === "power") return new Set([...callsOf(form.base), ...callsOf(form.exponent)]);
  if (form.kind === "sum" || form.kind === "product") {
    return new Set(form.parts.flatMap((part) => [...callsOf(part)]));
  }
  return new Set();
}

/** `2x(x-1)^2` has the factors x, x-1, x-1. */
function factors(form: Form): number {
  if (form.kind === "product") return form.parts.reduce((total, part) => total + factors(part), 0);
  if (form.kind === "power" && form.exponent.kind === "number" && form.exponent.value.n > 0n) {
    const times = integerOf(form.exponent.value);
    return times === null
      ? 1
      : Number(times < 100n ? times : 100n) * Math.max(1, factors(form.base));
  }
  return form.kind === "number" || form.key.startsWith("(Fraction") ? 0 : 1;
}

/** Whether a form divides by more than a number. */
function divides(form: Form): boolean {
  if (form.kind === "call" && form.head === "Inverse") return form.parts[0]?.kind !== "number";
  if (form.kind === "power") {
    const inverse = form.exponent.key.startsWith("-") && form.base.kind !== "number";
    return inverse || divides(form.base) || divides(form.exponent);
  }
  return form.kind === "sum" || form.kind === "product" ? form.parts.some(divides) : false;
}

const ROOTS = new Set(["Sqrt", "Root"]);

/** How many powers and roots are of a power or a root. */
function towers(form: Form): number {
  if (form.kind === "number" || form.kind === "symbol") return 0;
  if (form.kind === "power")
    return (isPower(form.base) ? 1 : 0) + towers(form.base) + towers(form.exponent);
  const own = form.kind === "call" && ROOTS.has(form.head) && form.parts.some(isPower) ? 1 : 0;
  return form.parts.reduce((total, part) => total + towers(part), own);
}

function roots(form: Form): number {
  if (form.kind === "number" || form.kind === "symbol") return 0;
  if (form.kind === "power") return roots(form.base) + roots(form.exponent);
  const own = form.kind === "call" && ROOTS.has(form.head) ? 1 : 0;
  return form.parts.reduce((total, part) => total + roots(part), own);
}

/**
 * Whether a form is numbers alone, still to be added up or multiplied: `3+4`, `48/2+48`, `3^2+1`. A power by itself, or a
 * large one, is a closed form.
 */
export function isLeftToAdd(form: Form): boolean {
  return form.kind !== "number" && form.kind !== "power" && isRational(form);
}

const SMALL_POWER = 1_000;

function isRational(form: Form): boolean {
  if (form.kind === "number") return true;
  if (form.kind === "power") {
    const { base, exponent } = form;
    if (base.kind !== "number" || exponent.kind !== "number") return false;
    const size = Math.abs(toDouble(base.value)) ** toDouble(exponent.value);
    return integerOf(exponent.value) !== null && size < SMALL_POWER;
  }
  if (form.kind === "sum" || form.kind === "product") return form.parts.every(isRational);
  return (
    form.kind === "call" && /^(?:Fraction|Inverse)$/.test(form.head) && form.parts.every(isRational)
  );
}

function isPower(form: Form): boolean {
  return form.kind === "power" || (form.kind === "call" && ROOTS.has(form.head));
}

function terms(form: Form): Form[] {
  return form.kind === "sum" ? form.parts : [form];
}

function isExpanded(form: Form): boolean {
  return terms(form).every((term) => {
    const parts = term.kind === "product" ? term.parts : [term];
    return parts.every(
      (part) => part.kind !== "sum" && !(part.kind === "power" && part.base.kind === "sum"),
    );
  });
}

/**
 * Whether an answer of the truth's value is as far worked out: it calls no other functions, divides by nothing that the
 * truth does not, has no fewer factors and no more terms. It may be twice as long.
 */
export function isAsWorkedOut(truth: Form, answer: Form): boolean {
  const allowed = callsOf(truth);
  for (const head of callsOf(answer)) if (!allowed.has(head) && !ARITHMETIC.has(head)) return false;
  if (divides(answer) && !divides(truth)) return false;
  if (towers(answer) > towers(truth) || roots(answer) > roots(truth)) return false;
  if (answer.size > 2 * truth.size + 4) return false;
  const simple = truth.kind === "sum" || truth.size <= answer.size;
  if (isExpanded(truth) && simple && !isExpanded(answer)) return false;
  if (isExpanded(truth)) return terms(answer).length <= terms(truth).length;
  return factors(answer) >= factors(truth);
}
