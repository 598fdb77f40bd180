/** An exact fraction. Not reduced: equality cross-multiplies, which is cheaper than a gcd a step. */
export type Rational = { n: bigint; d: bigint };

/** Above this size arithmetic goes on in floating point, so that no answer can cost much time or memory. */
export const MAX_BITS = 32_768;

const MAX_DIGITS = 2_000;

export function rational(n: bigint, d = 1n): Rational {
  return d < 0n ? { n: -n, d: -d } : { n, d };
}

export function equalRationals(a: Rational, b: Rational): boolean {
  return a.n * b.d === b.n * a.d;
}

/** The number as an integer, or null where it is none. */
export function integerOf(value: Rational): bigint | null {
  if (value.d === 1n) return value.n;
  return value.n % value.d === 0n ? value.n / value.d : null;
}

export function bitLength(value: bigint): number {
  const digits = value.toString(16);
  return (digits.length - (value < 0n ? 1 : 0)) * 4;
}

/** The nearest double, also where numerator and denominator are each beyond its range. */
export function toDouble({ n, d }: Rational): number {
  const near = Number(n) / Number(d);
  if (Number.isFinite(near)) return near;
  const shift = bitLength(n) - bitLength(d) - 64;
  const quotient = shift > 0 ? n / (d << BigInt(shift)) : (n << BigInt(-shift)) / d;
  return Number(quotient) * 2 ** shift;
}

const DECIMAL = /^([-+]?)(\d*)(?:\.(\d*)(?:\((\d+)\))?)?(?:e([-+]?\d{1,4}))?$/i;

/** Reads `12`, `-.5`, `1.25e-3` and `0.1(6)` (a repeating decimal); null for everything else. */
export function parseDecimal(text: string): Rational | null {
  if (text.length > MAX_DIGITS) return null;
  const match = DECIMAL.exec(text);
  if (!match) return null;
  const [, sign, whole = "", part = "", repeating = "", exponent = "0"] = match;
  if (whole + part + repeating === "") return null;
  let n = BigInt(whole + part || "0");
  let d = 10n ** BigInt(part.length);
  if (repeating !== "") {
    const nines = 10n ** BigInt(repeating.length) - 1n;
    n = n * nines + BigInt(repeating);
    d *= nines;
  }
  const power = Number(exponent);
  if (Math.abs(power) > MAX_DIGITS) return null;
  if (power > 0) n *= 10n ** BigInt(power);
  if (power < 0) d *= 10n ** BigInt(-power);
  return rational(sign === "-" ? -n : n, d);
}
