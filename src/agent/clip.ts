/** Of the lines: what went wrong tends to stand near the end, but not at it. */
const WINDOW_AT = 0.8;
const FEW_LINES = 10;

/** Room for the marks of two cuts. */
const MARKS = 100;

/** Where the text has a cut already, of which `clip` knows only that it is in the first half. */
type Cut = { bytes: number; mark: string };

/**
 * At most `maxChars` of a text: its two ends and a window around four fifths, in whole lines where they are
 * short enough, each cut marked with how many characters it took.
 */
export function clip(
  text: string,
  maxChars: number,
  earlier: Cut = { bytes: 0, mark: "" },
): string {
  if (text.length <= maxChars) return text;
  const part = Math.max(1, Math.floor((maxChars - MARKS) / 3));
  const headEnd = backToLine(text, part, part);
  const tailStart = onToLine(text, text.length - part, part);
  const middle = windowCentre(text);
  const wanted = Math.min(middle - Math.floor(part / 2), tailStart - part);
  const windowStart = onToLine(text, Math.max(headEnd, wanted), part);
  const windowEnd = backToLine(text, Math.min(tailStart, windowStart + part), part);
  if (windowEnd <= windowStart) {
    return text.slice(0, headEnd) + cut(tailStart - headEnd, earlier) + text.slice(tailStart);
  }
  return [
    text.slice(0, headEnd),
    cut(windowStart - headEnd, earlier),
    text.slice(windowStart, windowEnd),
    cut(tailStart - windowEnd),
    text.slice(tailStart),
  ].join("");
}

function windowCentre(text: string): number {
  const ends: number[] = [];
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) ends.push(at);
  if (ends.length < FEW_LINES) return Math.floor(text.length * WINDOW_AT);
  return ends[Math.floor(ends.length * WINDOW_AT)] ?? 0;
}

function cut(characters: number, earlier?: Cut): string {
  const all = characters + (earlier ? earlier.bytes - earlier.mark.length : 0);
  return all > 0 ? `\n[... ${all} characters cut ...]\n` : "";
}

/** The end of the last whole line before `at`; `at` itself where that is further than half of `part`. */
function backToLine(text: string, at: number, part: number): number {
  const newline = text.lastIndexOf("\n", at - 1);
  return newline >= at - part / 2 ? newline : at;
}

/** The start of the first whole line from `at` on; `at` itself where that is too far. */
function onToLine(text: string, at: number, part: number): number {
  const newline = text.indexOf("\n", at - 1);
  return newline >= 0 && newline < at + part / 2 ? newline + 1 : at;
}
