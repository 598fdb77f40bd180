import { bracedContent, lastBoxCommand, lastBoxed } from "./boxed.ts";

/** The content of the boxes that a message ends with, or the reason why they hold no single answer. */
export type BoxedAnswer = { text: string } | { refused: string };

type Box = { start: number; end: number; content: string };

const MAX_BOXES = 64;
/** An earlier box that is longer joins no list. */
const MAX_EARLIER_CHARS = 2_000;
const MAX_GAP_CHARS = 80;

/**
 * The answer that a message boxes. Boxes that follow each other in one sentence are one list (`\boxed{1} and
 * \boxed{2}`), so a second guess in a second box is no way to a reward. Boxes in other sentences are earlier results.
 * Null where the last box is missing, empty or never closes.
 */
export function boxedAnswer(text: string): BoxedAnswer | null {
  const content = lastBoxed(text);
  const place = content === null ? null : lastBoxCommand(text);
  if (content === null || content === "" || place === null) return null;
  const boxes = [outermost(text, { ...place, content, end: endOf(text, place.end, content) })];
  while (boxes.length < MAX_BOXES) {
    const [first] = boxes as [Box];
    const before = boxBefore(text, first.start);
    if (before === null || !joined(text.slice(before.end, first.start))) break;
    boxes.unshift(before);
  }
  const [first, last] = [boxes[0] as Box, boxes.at(-1) as Box];
  const refused = surroundings(
    text.slice(Math.max(0, first.start - 40), first.start),
    text.slice(last.end, last.end + 60),
  );
  if (refused !== null) return { refused };
  const contents = boxes.map((box) => box.content);
  return {
    text: contents.every((one) => one === last.content) ? last.content : contents.join(", "),
  };
}

function endOf(text: string, argument: number, content: string): number {
  return closedBox(text, argument)?.end ?? text.indexOf(content, argument) + content.length;
}

function closedBox(text: string, argument: number): { content: string; end: number } | null {
  let open = argument;
  while (/\s/.test(text[open] ?? "")) open++;
  if (text[open] !== "{") return null;
  const found = bracedContent(text, open);
  return found && { content: found.content.trim(), end: found.end };
}

/** The box around a box: `\boxed{x = \boxed{5}}` is `x = 5`. */
function outermost(text: string, inner: Box): Box {
  let box = inner;
  for (let depth = 0; depth < 4; depth++) {
    const before = boxBefore(text, box.start, box.end);
    if (before === null || before.end < box.end) return box;
    box = before;
  }
  return box;
}

function boxBefore(text: string, start: number, atLeast = 0): Box | null {
  const from = Math.max(0, start - MAX_EARLIER_CHARS);
  const place = lastBoxCommand(text.slice(from, start));
  if (place === null) return null;
  const until = Math.max(start, atLeast) + 2;
  const found = closedBox(text.slice(from, until + MAX_GAP_CHARS), place.end);
  return found && { start: from + place.start, end: from + found.end, content: found.content };
}

const HEDGE = "(?:or|alternatively|otherwise|maybe|perhaps|possibly|either)";
const HEDGED = new RegExp(`\\b${HEDGE}\\b`, "i");
const CONNECTED = /\b(?:and|or)\b|[,;&]/i;

/** Whether what stands between two boxes joins them: nothing, signs, or a few words with a comma, an "and" or an "or". */
function joined(gap: string): boolean {
  if (gap.length > MAX_GAP_CHARS) return false;
  if (HEDGED.test(gap)) return true;
  if (/[.!?:](?:\s|$)|\n\s*\n.*[a-zA-Z]/.test(gap.replace(/\\[a-zA-Z]+/g, ""))) return false;
  const words = gap.replace(/\\(?:quad|qquad|text|mbox|mathrm|left|right)|\\./g, " ");
  return CONNECTED.test(words) || !/[a-zA-Z0-9=]/.test(words);
}

const MATH_OPEN = String.raw`(?:\$+|\\\(|\\\[)?\s*`;
const OPERATOR_BEFORE = new RegExp(
  [
    String.raw`\d\.?$|[^|\s]\|$|^\|$|\$\|$`,
    String.raw`(?:\/|\^\{?|\\(?:cdot|times|pm|mp|not|ne|neq|lt|gt|[lg]eq?|[lg]eqslant)|[=(,\d]\s*-)\s*$`,
    String.raw`\\(?:frac|sqrt)(?:\{[^{}]*\})?\{?\s*$`,
    // Within a formula, where no arrow or tag ends so.
    String.raw`\$[^$<>]*[a-zA-Z0-9)}]\s*[<>]\s*$|\$[^$]*[\d}]\s*[,;]\s*$`,
  ].join("|"),
);
const DENIED_BEFORE = new RegExp(
  String.raw`\b(?:not|never|isn't|wasn't|cannot be|between|(?:less|more|greater|fewer) than)\s+(?:equal\s+to\s+)?${MATH_OPEN}$`,
  "i",
);
const OPERATOR_AFTER = new RegExp(
  [
    String.raw`^\s*(?:\^|\/\s*[\d\\]|\\(?:cdot|times|pm|div|ne|neq)(?![a-zA-Z])|[-+]\s*[\d\\])`,
    String.raw`^(?:\d|\.\d|_[\d{]|\||[xyznk](?![a-zA-Z])|!\s*(?:\$|\\[)\]]))`,
    String.raw`^\s*[,;]\s*-?[\d.]+\s*\)?\s*(?:\$|\\[)\]])`,
    String.raw`^[\s$]*(?:\\text\{\s*)?(?:hundred|thousand|million|billion|trillion|dozen)s?\b`,
  ].join("|"),
);
const HEDGE_AFTER = new RegExp(
  [
    String.raw`^[\s$.,;()\\\]]{0,12}(?:text\{\s*)?\b(?:or|alternatively|maybe|perhaps|possibly)\b.{0,40}\d`,
    String.raw`^[\s$.,;()\\\]]{0,12}(?:text\{\s*)?\bif\b.{0,40}\b(?:otherwise|else|then)\b`,
  ].join("|"),
  "is",
);

/** Why the text around a box changes what the box says, or null. */
function surroundings(before: string, after: string): string | null {
  if (OPERATOR_BEFORE.test(before) || OPERATOR_AFTER.test(after))
    return "the box is only a part of a formula";
  if (DENIED_BEFORE.test(before)) return "the text denies the box";
  if (HEDGE_AFTER.test(after)) return "the text offers a second answer behind the box";
  return null;
}
