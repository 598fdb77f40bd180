import type { Segment } from "../inference/tokens/segment.ts";
import { numbersOf } from "../inference/tokens/token-buffer.ts";
import type { TokenSegment } from "../trajectory/record.ts";

/**
 * A conversation's ids as they are recorded.
 *
 * @param logprobs of each completion, by its turn; null where the engine gave none
 */
export function tokenSegments(
  segments: readonly Segment[],
  logprobs: readonly (readonly number[] | null)[],
): TokenSegment[] {
  return segments.map((segment) => {
    const { fork } = segment;
    const { ids, spans } = withoutUnseen(segment);
    const trained = spans.filter(({ kind }) => kind === "sampled");
    // Of a token that the template replaced neither the id nor its log-probability is kept.
    const kept = trained.map(({ start, end, turn = -1 }) => logprobs[turn]?.slice(0, end - start));
    const complete = kept.every((values) => values !== undefined);
    return { ids: numbersOf(ids), spans, fork, logprobs: complete ? kept.flat() : null };
  });
}

/** Without what was put behind the model's last words and that no call has shown it. */
function withoutUnseen({ ids, spans }: Segment): Pick<Segment, "ids" | "spans"> {
  const last = spans.findLastIndex(({ kind }) => kind === "sampled");
  if (last < 0) return { ids, spans };
  return { ids: ids.slice(0, spans[last]?.end), spans: spans.slice(0, last + 1) };
}
