import { MAX_JSON_DEPTH } from "./is-deeper.ts";

/** Lists and objects in one text: each costs some 80 bytes of memory, however few bytes of text it has. */
const MAX_CONTAINERS = 2_000_000;
/** Keys of one object: a table of that many takes seconds to build. */
const MAX_KEYS = 100_000;

const [QUOTE, BACKSLASH, COLON] = [0x22, 0x5c, 0x3a];
/** `[` and `]` are `{` and `}` but for this bit. */
const [BIT, OPEN, CLOSE] = [0x20, 0x7b, 0x7d];

/**
 * Why JSON is not to be parsed, to follow its name in a sentence; null where its value takes memory and time in
 * proportion to its bytes. `JSON.parse` takes gigabytes for megabytes of brackets. What is no JSON is not told here.
 */
export function whyTooComplex(bytes: Uint8Array): string | null {
  const keys = new Uint32Array(MAX_JSON_DEPTH + 2);
  let depth = 0;
  let containers = 0;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes[at] as number;
    if (byte === QUOTE) at = endOfString(bytes, at);
    else if (byte === COLON) {
      const count = (keys[depth] ?? 0) + 1;
      keys[depth] = count;
      if (count > MAX_KEYS) return `has an object of more than ${MAX_KEYS} keys`;
    } else if ((byte | BIT) === OPEN) {
      depth++;
      containers++;
      keys[depth] = 0;
      if (depth > MAX_JSON_DEPTH) {
        return `has more than ${MAX_JSON_DEPTH} lists and objects within each other`;
      }
      if (containers > MAX_CONTAINERS) return `has more than ${MAX_CONTAINERS} lists and objects`;
    } else if ((byte | BIT) === CLOSE) depth = Math.max(0, depth - 1);
  }
  return null;
}

/** Where the string ends that begins at `start`: at a quote that an even number of backslashes stands before. */
function endOfString(bytes: Uint8Array, start: number): number {
  for (let from = start + 1; ; ) {
    const end = bytes.indexOf(QUOTE, from);
    if (end === -1) return bytes.length;
    let before = end;
    while (before > from && bytes[before - 1] === BACKSLASH) before--;
    if ((end - before) % 2 === 0) return end;
    from = end + 1;
  }
}
