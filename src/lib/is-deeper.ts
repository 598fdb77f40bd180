/** As many lists and objects within each other as a value may have that others wrote. */
export const MAX_JSON_DEPTH = 256;

/**
 * Whether lists and objects lie deeper within each other than `depth`. `JSON.parse` reads any depth; what goes through
 * such a value later, `JSON.stringify` and the copy to another thread among them, runs out of stack.
 */
export function isDeeper(value: unknown, depth: number = MAX_JSON_DEPTH): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (depth === 0) return true;
  if (Array.isArray(value)) return value.some((item) => isDeeper(item, depth - 1));
  for (const name in value) {
    if (isDeeper((value as Record<string, unknown>)[name], depth - 1)) return true;
  }
  return false;
}
