import { isDeeper, MAX_JSON_DEPTH } from "./is-deeper.ts";

/**
 * Why a parsed JSON value that others wrote is not taken, to follow its name in a sentence; null for one that is. The
 * key `__proto__` is dropped or followed by whatever copies such a value, so that what was checked is not what is used.
 */
export function whyNotPlain(value: unknown): string | null {
  if (isDeeper(value)) {
    return `has more than ${MAX_JSON_DEPTH} lists and objects within each other`;
  }
  return hasProtoKey(value) ? "has a key __proto__" : null;
}

function hasProtoKey(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (Array.isArray(value)) return value.some(hasProtoKey);
  for (const name in value) {
    if (name === "__proto__" || hasProtoKey((value as Record<string, unknown>)[name])) return true;
  }
  return false;
}
