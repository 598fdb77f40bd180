import type { WeightSpan } from "../inference/generate.ts";
import type { TokenSegment, Turn } from "./record.ts";

/**
 * Checks what a trainer relies on before a trajectory leaves the worker: that its spans, masks and
 * log-probabilities fit its ids, that a forked segment begins with the ids it shares with the one before it,
 * and that every turn's ids are there once, as many as the engine counted, each of a known weight version or none.
 * One that has a problem is a failure of the service, never data.
 *
 * @param segments empty where the engine gave no ids
 * @returns what does not hold, and where; null where all does
 */
export function tokenProblem(
  segments: readonly TokenSegment[],
  turns: readonly Turn[],
): string | null {
  if (segments.length === 0) return null;
  for (const [index, segment] of segments.entries()) {
    const problem = problemOf(segment) ?? forkProblem(segments, index);
    if (problem) return `segment ${index}: ${problem}`;
  }
  const sampled = new Map<number, number>();
  return sampledOnce(segments, turns.length, sampled) ?? turnProblem(turns, sampled);
}

function problemOf({ ids, spans, logprobs }: TokenSegment): string | null {
  if (!ids.every((id) => Number.isInteger(id) && id >= 0)) return "an id is no whole number";
  let at = 0;
  let sampled = 0;
  for (const { kind, start, end, mask, dropped } of spans) {
    // Of a turn that was nothing but an end of its own, which the template replaced, no id is left.
    const isEmpty = end === start && dropped === undefined;
    if (start !== at || end < start || isEmpty) return `the spans leave a gap at ${at}`;
    if ((mask === 1) !== (kind === "sampled")) return `the mask of ${start} to ${end} is ${mask}`;
    if (kind === "sampled") sampled += end - start;
    at = end;
  }
  if (at !== ids.length) return `the spans end at ${at} of ${ids.length} ids`;
  if (spans[0]?.kind !== "prompt") return "it does not begin with a prompt";
  if (logprobs === null) return null;
  if (logprobs.length !== sampled) {
    return `${logprobs.length} log-probabilities for ${sampled} sampled ids`;
  }
  return logprobs.every(Number.isFinite) ? null : "a log-probability is not finite";
}

/** The segment before may have ended without what no call has shown its engine. */
function forkProblem(segments: readonly TokenSegment[], index: number): string | null {
  const { fork, ids } = segments[index] as TokenSegment;
  if ((index === 0) !== (fork === null)) return "only the first segment is no fork";
  if (fork === null) return null;
  const { from, common } = fork;
  const before = from < index ? segments[from] : undefined;
  if (!before) return `it forks from segment ${from}`;
  if (common > ids.length) return `it shares ${common} ids and has ${ids.length}`;
  const shared = Math.min(common, before.ids.length);
  for (let at = 0; at < shared; at++) {
    if (ids[at] !== before.ids[at]) return `id ${at} is not the one of segment ${from}`;
  }
  return null;
}

/** Notes in `found` how many ids were sampled in each turn. */
function sampledOnce(
  segments: readonly TokenSegment[],
  turns: number,
  found: Map<number, number>,
): string | null {
  let last = -1;
  for (const { turn, kind, start, end, dropped } of segments.flatMap(({ spans }) => spans)) {
    if (kind !== "sampled") continue;
    if (turn === undefined || turn <= last || turn >= turns) {
      return `ids are of turn ${turn}, after turn ${last} of ${turns}`;
    }
    found.set(turn, end - start + (dropped === undefined ? 0 : 1));
    last = turn;
  }
  return null;
}

function turnProblem(turns: readonly Turn[], sampled: Map<number, number>): string | null {
  for (const [index, turn] of turns.entries()) {
    const { completion_tokens: counted, weight_spans: versions } = turn;
    const tokens = sampled.get(index) ?? 0;
    if (counted !== tokens) return `turn ${index}: ${tokens} sampled ids, and ${counted} counted`;
    const problem = versionProblem(versions, tokens, turn.weight_version);
    if (problem) return `turn ${index}: ${problem}`;
  }
  return null;
}

function versionProblem(
  spans: readonly WeightSpan[],
  tokens: number,
  last: string | null,
): string | null {
  if (spans.length === 0) return null;
  let at = 0;
  for (const { start, end } of spans) {
    if (start !== at || end < start) return `a weight version spans ${start} to ${end}`;
    at = end;
  }
  if (at !== tokens) return `weight versions span ${at} of ${tokens} ids`;
  const end = spans.at(-1)?.version;
  return end === last ? null : `its last ids are of version ${end}, and it says ${last}`;
}
