/**
 * Whether lists and objects lie within each other more than `most` deep in a JSON text. Asked before it is read: what is
 * deeper than the stack can be parsed, but to write it takes seconds, and fails.
 */
export function isDeeperThan(most: number, text: string): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const char = text[at];
    if (quoted) {
      if (char === "\\") at += 1;
      else if (char === '"') quoted = false;
    } else if (char === '"') quoted = true;
    else if (char === "{" || char === "[") {
      depth += 1;
      if (depth > most) return true;
    } else if (char === "}" || char === "]") depth -= 1;
  }
  return false;
}
