import { exact, type Value } from "./value.ts";

/**
 * The value of a variable at one of the sample points. It depends on the name and the index alone, so
 * both sides of a comparison see the same one. The kinds of points take turns: between 0 and 1 (for
 * `\arcsin`), above 1 (for logarithms), whole (for `n!` and `(-1)^n`), below 0, and large.
 */
export function sampleReals(name: string, index: number): Value {
  const hash = hashOf(`${index}:${name}`);
  const thousandths = BigInt(1 + (hash % 997));
  const kind = KINDS[index % KINDS.length] as Kind;
  return kind(thousandths, hash);
}

type Kind = (thousandths: bigint, hash: number) => Value;

const KINDS: Kind[] = [
  (part) => exact(part, 1009n),
  (part) => exact(part + 1013n, 613n),
  (_part, hash) => exact(BigInt(2 + (hash % 11))),
  (part) => exact(-part, 307n),
  (part) => exact(part + 20_011n, 997n),
  (_part, hash) => exact(BigInt(3 + (hash % 23))),
  (part) => exact(-part, 1033n),
];

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (let at = 0; at < text.length; at++) {
    hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193) >>> 0;
  }
  return hash;
}
