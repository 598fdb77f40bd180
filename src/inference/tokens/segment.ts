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
  /** Sampled last in this span and left out, because the template ends the turn differently. */
  dropped?: number;
};

export type ForkReason =
  /** The template shows earlier turns differently now, or no longer their reasoning. */
  | "template_rewrote_history"
  /** The messages were replaced, as by compaction or an edit. */
  | "messages_replaced"
  /** The tools or the template's variables changed. */
  | "tools_changed";

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
 * Shapes: the spans cover `ids` without gaps, in order.
 */
export type Segment = { index: number; ids: number[]; spans: Span[]; fork: Fork | null };

export function appendSpan(segment: Segment, kind: SpanKind, ids: readonly number[]): void {
  if (ids.length === 0) return;
  const start = segment.ids.length;
  for (const id of ids) segment.ids.push(id);
  const end = segment.ids.length;
  segment.spans.push({ kind, start, end, mask: kind === "sampled" ? 1 : 0 });
}

/** One number per id: 1 where it was sampled in this segment. */
export function lossMask({ ids, spans }: Segment): Uint8Array {
  const mask = new Uint8Array(ids.length);
  for (const span of spans) if (span.mask === 1) mask.fill(1, span.start, span.end);
  return mask;
}
