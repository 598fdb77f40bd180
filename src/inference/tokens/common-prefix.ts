import type { TextTokenizer } from "./tokenizer.ts";

/**
 * How much of `ids` a new rendering can keep: up to the last added token whose text both share.
 * Only there can text be cut without changing how it is tokenised.
 *
 * Units: `ids` counts ids, `text` UTF-16 code units of the rendering.
 */
export function commonPrefix(
  tokenizer: TextTokenizer,
  ids: Int32Array,
  text: string,
): { ids: number; text: number } {
  const common = { ids: 0, text: 0 };
  let at = 0;
  for (const piece of tokenizer.pieces(ids)) {
    if (!text.startsWith(piece.text, at)) break;
    at += piece.text.length;
    if (piece.added) {
      common.ids = piece.end;
      common.text = at;
    }
  }
  return common;
}

const SHOWN_CHARS = 48;

/** Where two texts part, for people. */
export function firstDifference(before: string, after: string): string {
  let at = 0;
  while (at < before.length && before[at] === after[at]) at += 1;
  // Not within a character.
  if (/[\udc00-\udfff]/.test(before.charAt(at))) at -= 1;
  const shown = (text: string) => JSON.stringify(text.slice(at, at + SHOWN_CHARS));
  const context = JSON.stringify(before.slice(Math.max(0, at - SHOWN_CHARS / 2), at));
  return `after ${context}: ${shown(before)} became ${shown(after)}`;
}
