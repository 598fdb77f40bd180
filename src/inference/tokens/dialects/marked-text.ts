import type { TextTokenizer } from "../tokenizer.ts";

/**
 * What a model wrote, as text that remembers where its special tokens are. A marker that is one
 * token is found only where that token was sampled, so a quoted marker can't fake a call.
 */
export class MarkedText {
  readonly text: string;
  /** Of each special token, rising. */
  readonly #starts: ReadonlyMap<string, readonly number[]>;
  readonly #isToken: (marker: string) => boolean;
  readonly #found = new Map<string, { from: number; at: number }>();

  private constructor(
    text: string,
    starts: ReadonlyMap<string, readonly number[]>,
    isToken: (marker: string) => boolean,
  ) {
    this.text = text;
    this.#starts = starts;
    this.#isToken = isToken;
  }

  /** `stopIds` at the end are no part of the text. */
  static ofIds(tokenizer: TextTokenizer, ids: ArrayLike<number>, stopIds: ReadonlySet<number>) {
    let end = ids.length;
    while (end > 0 && stopIds.has(ids[end - 1] as number)) end -= 1;
    const starts = new Map<string, number[]>();
    let text = "";
    for (const piece of tokenizer.pieces(Array.from(ids).slice(0, end))) {
      if (piece.added) {
        const known = starts.get(piece.text);
        if (known) known.push(text.length);
        else starts.set(piece.text, [text.length]);
      }
      text += piece.text;
    }
    return new MarkedText(text, starts, (marker) => tokenizer.addedId(marker) !== undefined);
  }

  /** Of an engine that gives no ids: every marker counts. */
  static ofText(text: string): MarkedText {
    return new MarkedText(text, new Map(), () => false);
  }

  get length(): number {
    return this.text.length;
  }

  /** Whether a marker is one token, so that text that quotes it is not it. */
  isToken(marker: string): boolean {
    return this.#isToken(marker);
  }

  /** Where `marker` is next, or -1. */
  indexOf(marker: string, from = 0): number {
    if (!this.#isToken(marker)) return this.#indexOfText(marker, from);
    const starts = this.#starts.get(marker) ?? [];
    let low = 0;
    for (let high = starts.length; low < high; ) {
      const middle = (low + high) >> 1;
      if ((starts[middle] as number) < from) low = middle + 1;
      else high = middle;
    }
    return starts[low] ?? -1;
  }

  /** Who goes on asking from further behind, as parsers do, has the text searched once. */
  #indexOfText(marker: string, from: number): number {
    const last = this.#found.get(marker);
    if (last && from >= last.from && (last.at < 0 || from <= last.at)) return last.at;
    const at = this.text.indexOf(marker, from);
    this.#found.set(marker, { from, at });
    return at;
  }

  /** Whether `marker` is right here. */
  isAt(marker: string, at: number): boolean {
    return this.text.startsWith(marker, at) && this.indexOf(marker, at) === at;
  }

  /** The next position that is no white space. */
  skipSpace(from: number): number {
    let at = from;
    while (at < this.text.length && /\s/.test(this.text[at] as string)) at += 1;
    return at;
  }
}
