import assert from "node:assert";
import { TokenBuffer } from "./token-buffer.ts";

/**
 * `prompt`: rendered before the first call of its segment. `sampled`: by the engine. `observation`:
 * everything that was put between two calls: closing tokens, messages, the generation prompt.
 */
export type SpanKind = "prompt" | "sampled" | "observation";

/**
 * A stretch of a segment's ids.
 *
 * Units: `start` and `end` are indices of ids, `end` exclusive.
 */
export type Span = {
  kind: SpanKind;
  start: number;
  end: number;
  /** 1 where the ids are to be trained on, which is exactly where they were sampled. */
  mask: 0 | 1;
  /** Which completion of the conversation it is, counted from 0; for sampled ids only. */
  turn?: number;
  /** Sampled last in this span and left out, because the template ends the turn differently. */
  dropped?: number;
};

export type ForkReason =
  /** The template shows earlier turns differently now, or no longer their reasoning. */
  | "template_rewrote_history"
  /** The messages were replaced, as by compaction or an edit. */
  | "messages_replaced"
  /** The tools or the template's variables changed. */
  | "tools_changed"
  /** The engine makes the prompts, and this one does not go on from the ids before. */
  | "prompt_differs";

/** Why a segment is not the continuation of the one before it. */
export type Fork = {
  from: number;
  /** How many ids both begin with. They are in the new segment's prompt span, with mask 0. */
  common: number;
  reason: ForkReason;
  /** What differs, for people. */
  detail: string;
};

/**
 * One token sequence as an engine saw it. Only the last segment grows.
 *
 * Shapes: the spans cover the ids without gaps, in order.
 */
export class Segment {
  readonly index: number;
  readonly fork: Fork | null;
  readonly spans: Span[] = [];
  readonly #buffer = new TokenBuffer();
  /** What the engine has: its last prompt and completion. */
  readonly #seen = new TokenBuffer();

  constructor(index: number, fork: Fork | null) {
    this.index = index;
    this.fork = fork;
  }

  get ids(): Int32Array {
    return this.#buffer.ids;
  }

  append(kind: "prompt" | "observation", ids: ArrayLike<number>): void;
  append(kind: "sampled", ids: ArrayLike<number>, turn: number): void;
  append(kind: SpanKind, ids: ArrayLike<number>, turn?: number): void {
    if (ids.length === 0) return;
    const start = this.#buffer.length;
    this.#buffer.append(ids);
    const end = this.#buffer.length;
    if (turn === undefined) this.spans.push({ kind, start, end, mask: 0 });
    else this.spans.push({ kind, start, end, mask: 1, turn });
  }

  /** Leaves out the last id of a sampled span that ends the segment. */
  dropLast(): void {
    const span = this.spans.at(-1);
    assert(span?.kind === "sampled" && span.end > span.start, "only a sampled id can be dropped");
    span.dropped = this.ids[span.end - 1] as number;
    span.end -= 1;
    this.#buffer.truncate(span.end);
    this.#seen.truncate(span.end);
  }

  /** From now on the ids so far are what the engine has. */
  seal(): void {
    this.#seen.append(this.ids.subarray(this.#seen.length));
  }

  /** False when the ids no longer begin with what the engine has. */
  get extendsSealed(): boolean {
    return this.#buffer.startsWith(this.#seen);
  }

  /** One number per id: 1 where it was sampled in this segment. */
  lossMask(): Uint8Array {
    const mask = new Uint8Array(this.#buffer.length);
    for (const span of this.spans) if (span.mask === 1) mask.fill(1, span.start, span.end);
    return mask;
  }
}
