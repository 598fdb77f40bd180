import type { Trajectory } from "../../trajectory/record.ts";

/**
 * Shapes: one entry per turn, empty where the turn has no tokens to show. Each prompt begins with all ids of
 * the calls before it, one after the other, and `generation_log_probs` is as long as `generation_token_ids`.
 */
export type CallTokens = {
  calls: {
    prompt_token_ids?: number[];
    generation_token_ids?: number[];
    generation_log_probs?: number[];
  }[];
  /** Why the tokens of some turns are missing although the rollout was by tokens. */
  broken: string | null;
};

/**
 * The tokens of each call, as NeMo RL puts a sample together from them. It asserts that each prompt extends the
 * call before, and one sample that does not ends the whole batch: so only the longest beginning that holds
 * is given.
 */
export function callTokens(trajectory: Trajectory): CallTokens {
  const { segments, turns, token_ids } = trajectory;
  const calls: CallTokens["calls"] = turns.map(() => ({}));
  const [segment] = segments;
  if (token_ids !== "exact" || !segment) return { calls, broken: null };
  if (segment.logprobs === null) return { calls, broken: "the engine gave no log-probabilities" };
  let at = 0;
  let given = 0;
  for (const { kind, start, end, turn } of segment.spans) {
    if (kind !== "sampled" || turn === undefined) continue;
    const call = calls[turn];
    const values = segment.logprobs.slice(at, at + end - start);
    at += end - start;
    if (!call || !values.every(Number.isFinite)) break;
    call.prompt_token_ids ??= segment.ids.slice(0, start);
    call.generation_token_ids = [
      ...(call.generation_token_ids ?? []),
      ...segment.ids.slice(start, end),
    ];
    call.generation_log_probs = [...(call.generation_log_probs ?? []), ...values];
    given = turn + 1;
  }
  if (given >= turns.length) return { calls, broken: null };
  return { calls, broken: `only the first ${given} of ${turns.length} turns are one sequence` };
}
