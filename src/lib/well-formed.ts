/**
 * Plain data whose texts hold no half of a pair of surrogates, as a cut in the middle of a character leaves one: JSON
 * carries it, and a client's Python then fails to print it.
 */
export function wellFormed<T>(value: T): T {
  if (typeof value === "string") return value.toWellFormed() as T;
  if (Array.isArray(value)) return value.map(wellFormed) as T;
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([name, each]) => [name, wellFormed(each)]);
  return Object.fromEntries(entries) as T;
}
