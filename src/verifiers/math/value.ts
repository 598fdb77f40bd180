import { bitLength, MAX_BITS, type Rational, rational, toDouble } from "./rational.ts";

/**
 * A value at one sample point: exact while the arithmetic is rational and small enough, else a complex
 * double with a bound on its rounding error. `NaN` in `re` means undefined at this point.
 */
export type Value = Exact | Float;
export type Exact = { kind: "exact" } & Rational;
export type Float = { kind: "float"; re: number; im: number; error: number };

const EPSILON = 2 ** -52;

export const UNDEFINED: Float = { kind: "float", re: Number.NaN, im: 0, error: 0 };

export function exact(n: bigint, d = 1n): Value {
  if (d === 0n) return UNDEFINED;
  const value: Exact = { kind: "exact", ...rational(n, d) };
  if (bitLength(n) <= MAX_BITS && bitLength(d) <= MAX_BITS) return value;
  return toFloat(value);
}

/** `error` is the error that came in; the rounding of this result is added to it. */
export function float(re: number, im: number, error: number): Float {
  if (!Number.isFinite(re) || !Number.isFinite(im)) return UNDEFINED;
  return { kind: "float", re, im, error: error + EPSILON * Math.hypot(re, im) };
}

export function toFloat(value: Value): Float {
  return value.kind === "float" ? value : float(toDouble(value), 0, 0);
}

export function isDefined(value: Value): boolean {
  return value.kind === "exact" || !Number.isNaN(value.re);
}

export function magnitude(value: Float): number {
  return Math.hypot(value.re, value.im);
}

export function add(left: Value, right: Value): Value {
  if (left.kind === "exact" && right.kind === "exact") {
    return exact(left.n * right.d + right.n * left.d, left.d * right.d);
  }
  const [a, b] = [toFloat(left), toFloat(right)];
  return float(a.re + b.re, a.im + b.im, a.error + b.error);
}

export function negate(value: Value): Value {
  if (value.kind === "exact") return { ...value, n: -value.n };
  return { ...value, re: -value.re, im: -value.im };
}

export function multiply(left: Value, right: Value): Value {
  if (left.kind === "exact" && right.kind === "exact") {
    return exact(left.n * right.n, left.d * right.d);
  }
  const [a, b] = [toFloat(left), toFloat(right)];
  const error = magnitude(a) * b.error + magnitude(b) * a.error;
  return float(a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re, error);
}

export function invert(value: Value): Value {
  if (value.kind === "exact") return exact(value.d, value.n);
  const square = value.re ** 2 + value.im ** 2;
  return float(value.re / square, -value.im / square, value.error / square);
}

export function exponential(value: Float): Float {
  const size = Math.exp(value.re);
  return float(size * Math.cos(value.im), size * Math.sin(value.im), size * value.error);
}

/** The principal branch. */
export function logarithm(value: Float): Float {
  const size = magnitude(value);
  return float(Math.log(size), Math.atan2(value.im, value.re), value.error / size);
}

/** Integer powers are exact while they fit; the others are principal values. */
export function power(base: Value, exponent: Value): Value {
  if (exponent.kind === "exact" && exponent.n % exponent.d === 0n) {
    const whole = exponent.n / exponent.d;
    if (base.kind === "exact") return integerPower(base, whole);
    if (whole >= -64n && whole <= 64n) return repeatedPower(base, Number(whole));
  }
  const [a, b] = [toFloat(base), toFloat(exponent)];
  if (a.re === 0 && a.im === 0) return b.re > 0 ? exact(0n) : UNDEFINED;
  if (b.re === 0.5 && b.im === 0 && a.im === 0) return squareRoot(a);
  return cleanRoot(a, b, exponential(toFloat(multiply(b, logarithm(a)))));
}

/** A positive real base has a real power; the exponential of a complex product may leave dust. */
function cleanRoot(base: Float, exponent: Float, result: Float): Float {
  const real = base.im === 0 && exponent.im === 0 && base.re > 0;
  return real ? { ...result, im: 0 } : result;
}

function integerPower(base: Exact, exponent: bigint): Value {
  if (exponent < 0n) {
    const inverse = invert(base);
    return inverse.kind === "exact" ? integerPower(inverse, -exponent) : inverse;
  }
  if (exponent === 0n || base.n === base.d) return exact(1n);
  if (base.n === 0n) return exact(0n);
  if (base.n === -base.d) return exact(exponent % 2n === 0n ? 1n : -1n);
  const bits = BigInt(Math.max(bitLength(base.n), bitLength(base.d)));
  if (bits * exponent <= BigInt(MAX_BITS)) return exact(base.n ** exponent, base.d ** exponent);
  const a = toFloat(base);
  const times = Number(exponent);
  const result = a.re ** times;
  return float(result, 0, Math.abs(result) * times * EPSILON);
}

function repeatedPower(base: Float, exponent: number): Value {
  let result: Value = exact(1n);
  for (let step = 0; step < Math.abs(exponent); step++) result = multiply(result, base);
  return exponent < 0 ? invert(result) : result;
}

export function squareRoot(value: Value): Value {
  if (value.kind === "exact" && value.n >= 0n) {
    const [top, bottom] = [wholeRoot(value.n), wholeRoot(value.d)];
    if (top !== null && bottom !== null) return exact(top, bottom);
  }
  const a = toFloat(value);
  if (a.im !== 0) return exponential(toFloat(multiply(float(0.5, 0, 0), logarithm(a))));
  const root = Math.sqrt(Math.abs(a.re));
  const error = root === 0 ? 0 : a.error / (2 * root);
  return a.re < 0 ? float(0, root, error) : float(root, 0, error);
}

/** The integer square root where it is whole and within a double's exactness. */
function wholeRoot(value: bigint): bigint | null {
  if (value > 2n ** 104n) return null;
  const root = BigInt(Math.round(Math.sqrt(Number(value))));
  return root * root === value ? root : null;
}

/** Odd roots of negative reals are real, as a reader of `\sqrt[3]{-8}` expects. */
export function root(value: Value, degree: Value): Value {
  if (degree.kind !== "exact" || degree.d !== 1n || degree.n <= 0n)
    return power(value, invert(degree));
  if (degree.n === 2n) return squareRoot(value);
  const a = toFloat(value);
  if (a.im !== 0) return power(a, invert(degree));
  const size = Math.abs(a.re) ** (1 / Number(degree.n));
  const error = size === 0 ? 0 : (a.error * size) / (Math.abs(a.re) * Number(degree.n));
  if (a.re >= 0) return float(size, 0, error);
  return degree.n % 2n === 1n ? float(-size, 0, error) : power(a, invert(degree));
}
