/** How many items a request has at most. */
const PART_ITEMS = 500;
/** How large a request's items are together at most, unless one alone is larger. Rows of code bring megabytes of tests. */
const PART_BYTES = 8 << 20;

/** Cuts a list into parts that fit into a request of JSON each, in their order. */
export function inParts<T>(items: readonly T[]): T[][] {
  const parts: T[][] = [];
  let bytes = 0;
  for (const item of items) {
    const size = Buffer.byteLength(JSON.stringify(item));
    const last = parts.at(-1);
    if (!last || last.length === PART_ITEMS || bytes + size > PART_BYTES) {
      parts.push([item]);
      bytes = size;
    } else {
      last.push(item);
      bytes += size;
    }
  }
  return parts;
}
