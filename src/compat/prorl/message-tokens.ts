import { ServiceError } from "../../errors.ts";
import type { TokenSegment, Trajectory } from "../../trajectory/record.ts";

/**
 * The tokens of one message, as ProRL's trainers read them.
 *
 * Shapes: the `token_ids` of all messages before an assistant's, one after the other, are its `input_ids`;
 * `logprobs` is as long as `token_ids`. Separators and the generation prompt belong to the message before them.
 */
export type MessageTokens = {
  token_ids: number[];
  /** The whole prompt of an assistant message's call; null for other messages, or when left out. */
  input_ids: number[] | null;
  logprobs: number[] | null;
};

/**
 * Deals a trajectory's ids out to its messages, up to the last assistant's.
 *
 * Between two messages of the environment that follow each other the border is a guess where the template
 * writes them as one turn; what they hold together is exact.
 *
 * @throws ServiceError `token_invariant` when the ids are not one sequence with a stretch per turn.
 */
export function messageTokens(
  { segments, turns }: Pick<Trajectory, "segments" | "turns">,
  withInputIds: boolean,
): MessageTokens[] {
  const [segment, another] = segments;
  if (!segment || another) throw broken(`the rollout has ${segments.length} token sequences`);
  const sampled = sampledStretches(segment);
  if (sampled.length !== turns.length) {
    throw broken(`${turns.length} turns have ${sampled.length} sampled stretches of tokens`);
  }
  const dealt: MessageTokens[] = [];
  let end = 0;
  let logprob = 0;
  for (const [index, stretch] of sampled.entries()) {
    const message = turns[index]?.message ?? 0;
    const between = segment.ids.slice(end, stretch.start);
    const others = deal(between, message - dealt.length);
    dealt.push(...others.map((ids) => ({ token_ids: ids, input_ids: null, logprobs: null })));
    const token_ids = segment.ids.slice(stretch.start, stretch.end);
    dealt.push({
      token_ids,
      input_ids: withInputIds ? segment.ids.slice(0, stretch.start) : null,
      logprobs: segment.logprobs?.slice(logprob, logprob + token_ids.length) ?? null,
    });
    logprob += token_ids.length;
    end = stretch.end;
  }
  return dealt;
}

/** A turn that was broken off and resumed has several sampled spans with nothing between them. */
function sampledStretches({ spans }: TokenSegment): { start: number; end: number }[] {
  const stretches: { start: number; end: number; turn: number | undefined }[] = [];
  for (const { kind, start, end, turn } of spans) {
    if (kind !== "sampled") continue;
    const last = stretches.at(-1);
    if (last?.end === start && last.turn === turn) last.end = end;
    else stretches.push({ start, end, turn });
  }
  return stretches;
}

/** Cuts ids in front of tokens that open a turn, as the first one does; each part has at least one id. */
function deal(ids: number[], parts: number): number[][] {
  if (parts <= 1) return parts === 1 ? [ids] : [];
  const opener = ids[0];
  const cuts = ids.flatMap((id, index) => (id === opener && index > 0 ? [index] : []));
  const usable = cuts.length >= parts - 1 ? cuts : ids.map((_, index) => index + 1);
  const starts = [0, ...usable.slice(0, parts - 1)];
  return starts.map((start, index) => ids.slice(start, starts[index + 1]));
}

function broken(what: string): ServiceError {
  return new ServiceError("token_invariant", `the tokens can't be dealt out to messages: ${what}`);
}
