/**
 * A number in [0, 1) that depends on its arguments alone: the finaliser of MurmurHash3 over each.
 */
export function uniform(...parts: number[]): number {
  let hash = 0x9e3779b9;
  for (const part of parts) {
    hash ^= part | 0;
    hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
    hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
    hash ^= hash >>> 16;
  }
  return (hash >>> 0) / 2 ** 32;
}
