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

/** What stands between two markers. */
export type Bracketed = {
  start: number;
  body: number;
  bodyEnd: number;
  end: number;
  /** Whether it ends with its own marker, and not where another begins. */
  closed: boolean;
};

/** All that stands between two markers, one after another. */
export function* bracketed(
  source: MarkedText,
  from: number,
  [open, close]: readonly [string, string],
): Generator<Bracketed> {
  let start = source.indexOf(open, from);
  while (start >= 0) {
    const body = start + open.length;
    const closing = source.indexOf(close, body);
    const next = source.indexOf(open, body);
    const closed = closing >= 0 && (next < 0 || closing < next);
    const bodyEnd = closed ? closing : next < 0 ? source.length : next;
    const end = closed ? closing + close.length : bodyEnd;
    yield { start, body, bodyEnd, end, closed };
    start = source.indexOf(open, end);
  }
}
