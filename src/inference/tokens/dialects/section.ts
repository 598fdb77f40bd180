import type { FoundCall } from "./dialect.ts";
import type { MarkedText } from "./marked-text.ts";

/** The markers around all calls belong to the first and the last one, and to no text. */
export function coverSection(
  source: MarkedText,
  from: number,
  found: FoundCall[],
  [open, close]: readonly [string, string],
): FoundCall[] {
  const first = found[0];
  const last = found.at(-1);
  if (!first || !last) return found;
  const start = source.indexOf(open, from);
  const end = source.indexOf(close, last.end);
  if (start >= 0 && start < first.start) first.start = start;
  if (end >= 0) last.end = end + close.length;
  return found;
}
