import { ServiceError } from "../errors.ts";
import type { TokenSegment } from "./record.ts";

/**
 * Checks what a trainer relies on before a trajectory leaves the worker: one that fails is a failure of the
 * service, never data.
 *
 * @throws ServiceError `token_invariant` with the place and the reason.
 */
export function validateSegments(segments: readonly TokenSegment[]): void {
  for (const [index, segment] of segments.entries()) {
    const problem = problemOf(segment, index);
    if (problem) throw new ServiceError("token_invariant", `segment ${index}: ${problem}`);
  }
}

function problemOf({ ids, spans, logprobs, fork }: TokenSegment, index: number): string | null {
  if (!ids.every((id) => Number.isInteger(id) && id >= 0)) return "an id is no whole number";
  let at = 0;
  let sampled = 0;
  for (const { kind, start, end, mask } of spans) {
    if (start !== at || end <= start) return `the spans leave a gap at ${at}`;
    if ((mask === 1) !== (kind === "sampled")) return `the mask of ${start} to ${end} is ${mask}`;
    if (kind === "sampled") sampled += end - start;
    at = end;
  }
  if (at !== ids.length) return `the spans end at ${at} of ${ids.length} ids`;
  if (spans[0]?.kind !== "prompt") return "it does not begin with a prompt";
  if ((index === 0) !== (fork === null)) return "only the first segment is no fork";
  if (logprobs === null) return null;
  if (logprobs.length !== sampled) {
    return `${logprobs.length} log-probabilities for ${sampled} sampled ids`;
  }
  return logprobs.every(Number.isFinite) ? null : "a log-probability is not finite";
}
