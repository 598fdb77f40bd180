import { bitLength, integerOf, MAX_BITS } from "./rational.ts";
import {
  add,
  exact,
  exponential,
  type Float,
  float,
  invert,
  logarithm,
  magnitude,
  multiply,
  negate,
  power,
  root,
  squareRoot,
  toFloat,
  UNDEFINED,
  type Value,
} from "./value.ts";

/** What an expression holds that has no value here: an integral, an unknown function, an error. */
export class NotComputable extends Error {}

const MAX_FACTORIAL = 2_500n;

/** `second` stands in for a missing second operand. */
export type Operation = {
  arity: number;
  second?: Value;
  run: (a: Value, b: Value, all: Value[]) => Value;
};

const MANY = Number.POSITIVE_INFINITY;
const first = (a: Value): Value => a;

type RealFunction = { of: (x: number) => number; slope: (x: number, y: number) => number };

const REAL_FUNCTIONS: Record<string, RealFunction> = {
  Sin: { of: Math.sin, slope: () => 1 },
  Cos: { of: Math.cos, slope: () => 1 },
  Tan: { of: Math.tan, slope: (_x, y) => 1 + y * y },
  Cot: { of: (x) => 1 / Math.tan(x), slope: (_x, y) => 1 + y * y },
  Sec: { of: (x) => 1 / Math.cos(x), slope: (_x, y) => y * y },
  Csc: { of: (x) => 1 / Math.sin(x), slope: (_x, y) => y * y },
  Arcsin: { of: Math.asin, slope: (x) => 1 / Math.sqrt(1 - x * x) },
  Arccos: { of: Math.acos, slope: (x) => 1 / Math.sqrt(1 - x * x) },
  Arctan: { of: Math.atan, slope: () => 1 },
  Sinh: { of: Math.sinh, slope: (x) => Math.cosh(x) },
  Cosh: { of: Math.cosh, slope: (x) => Math.cosh(x) },
  Tanh: { of: Math.tanh, slope: () => 1 },
};

const ARITHMETIC: Record<string, Operation> = {
  Add: { arity: MANY, run: (_a, _b, all) => all.reduce(add) },
  Subtract: { arity: 2, run: (a, b) => add(a, negate(b)) },
  Negate: { arity: 1, run: negate },
  Multiply: { arity: MANY, run: (_a, _b, all) => all.reduce(multiply) },
  InvisibleOperator: { arity: MANY, run: (_a, _b, all) => all.reduce(multiply) },
  Divide: { arity: 2, run: (a, b) => multiply(a, invert(b)) },
  Rational: { arity: 2, run: (a, b) => multiply(a, invert(b)) },
  Delimiter: { arity: 1, run: first },
  Power: { arity: 2, run: power },
  Sqrt: { arity: 1, run: squareRoot },
  Root: { arity: 2, run: root },
  Exp: { arity: 1, run: (a) => exponential(toFloat(a)) },
  Ln: { arity: 1, run: (a) => logarithm(toFloat(a)) },
  Lb: { arity: 1, run: (a) => logarithmTo(exact(2n), a) },
  Log: { arity: 2, second: exact(10n), run: (a, b) => logarithmTo(b, a) },
  Abs: { arity: 1, run: absolute },
  Degrees: { arity: 1, run: (a) => multiply(a, float(Math.PI / 180, 0, 0)) },
  Factorial: { arity: 1, run: factorial },
  Binomial: { arity: 2, run: binomial },
  Floor: { arity: 1, run: floor },
  Ceil: { arity: 1, run: (a) => negate(floor(negate(a))) },
  Max: { arity: MANY, run: (_a, _b, all) => all.reduce((x, y) => (isLess(x, y) ? y : x)) },
  Min: { arity: MANY, run: (_a, _b, all) => all.reduce((x, y) => (isLess(y, x) ? y : x)) },
  GCD: { arity: 2, run: greatestCommonDivisor },
};

/** What is computed for each head of a parsed expression. A map, so that no name finds `constructor`. */
export const OPERATIONS: ReadonlyMap<string, Operation> = new Map([
  ...Object.entries(ARITHMETIC),
  ...Object.entries(REAL_FUNCTIONS).map(([name, real]): [string, Operation] => [
    name,
    { arity: 1, run: (a) => realFunction(real, toFloat(a)) },
  ]),
]);

function realFunction({ of, slope }: RealFunction, value: Float): Value {
  if (value.im !== 0) return UNDEFINED;
  const result = of(value.re);
  const steepness = Math.min(Math.abs(slope(value.re, result)), 1e9);
  return float(result, 0, value.error * steepness + Number.EPSILON);
}

function logarithmTo(base: Value, value: Value): Value {
  return multiply(logarithm(toFloat(value)), invert(logarithm(toFloat(base))));
}

function absolute(value: Value): Value {
  if (value.kind === "exact") return value.n < 0n ? negate(value) : value;
  return float(magnitude(value), 0, value.error);
}

function floor(value: Value): Value {
  if (value.kind === "float") {
    const whole = Math.round(value.re);
    const unclear = Math.abs(value.re - whole) <= 4 * value.error;
    return value.im === 0 && !unclear ? float(Math.floor(value.re), 0, 0) : UNDEFINED;
  }
  const down = value.n / value.d;
  return exact(value.n < 0n && down * value.d !== value.n ? down - 1n : down);
}

function isLess(a: Value, b: Value): boolean {
  const difference = add(a, negate(b));
  return difference.kind === "exact" ? difference.n < 0n : difference.re < 0;
}

function factorial(value: Value): Value {
  const n = value.kind === "exact" ? integerOf(value) : null;
  if (n === null || n < 0n) return UNDEFINED;
  if (n > MAX_FACTORIAL) throw new NotComputable(`the factorial of ${n} is too large`);
  return exact(product(1n, n));
}

/** Halving keeps the factors of one size, which is what makes long products cheap. */
function product(low: bigint, high: bigint): bigint {
  if (low > high) return 1n;
  if (low === high) return low;
  const middle = (low + high) >> 1n;
  return product(low, middle) * product(middle + 1n, high);
}

function binomial(top: Value, bottom: Value): Value {
  const n = top.kind === "exact" ? integerOf(top) : null;
  const k = bottom.kind === "exact" ? integerOf(bottom) : null;
  if (n === null || k === null || n < 0n) return UNDEFINED;
  if (k < 0n || k > n) return exact(0n);
  const terms = 2n * k < n ? k : n - k;
  if (terms * BigInt(bitLength(n)) > 4 * MAX_BITS)
    throw new NotComputable("the binomial is too large");
  return exact(product(n - terms + 1n, n) / product(1n, terms));
}

function greatestCommonDivisor(left: Value, right: Value): Value {
  let a = left.kind === "exact" ? integerOf(left) : null;
  let b = right.kind === "exact" ? integerOf(right) : null;
  if (a === null || b === null) return UNDEFINED;
  if (bitLength(a) > 1_000 || bitLength(b) > 1_000) throw new NotComputable("the gcd is too large");
  while (b !== 0n) [a, b] = [b, a % b];
  return exact(a < 0n ? -a : a);
}
