import type { TextTokenizer } from "../tokenizer.ts";

/**
 * What a model wrote, as text that remembers where its special tokens are. A marker that is one
 * token is found only where that token was sampled, so a quoted marker can't fake a call.
 */
export class MarkedText {
  readonly text: string;
  readonly #starts: ReadonlyMap<number, string>;
  readonly #isToken: (marker: string) => boolean;

  private constructor(
    text: string,
    starts: ReadonlyMap<number, string>,
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
    const starts = new Map<number, string>();
    let text = "";
    for (const piece of tokenizer.pieces(Array.from(ids).slice(0, end))) {
      if (piece.added) starts.set(text.length, piece.text);
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

  /** Where `marker` is next, or -1. */
  indexOf(marker: string, from = 0): number {
    let at = this.text.indexOf(marker, from);
    if (!this.#isToken(marker)) return at;
    while (at >= 0 && this.#starts.get(at) !== marker) at = this.text.indexOf(marker, at + 1);
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
