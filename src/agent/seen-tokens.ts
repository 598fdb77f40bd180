import { Segment } from "../inference/tokens/segment.ts";
import type { TokenSegment } from "../trajectory/record.ts";
import { tokenSegments } from "./token-segments.ts";

/** One call. Shapes: `logprobs` has one entry for each of `ids`, or is null. */
type Call = {
  promptIds: readonly number[];
  ids: readonly number[];
  logprobs: number[] | null;
};

/**
 * The ids of a conversation that is called by messages, where the engine tells with each answer what it saw and sampled.
 * It makes each prompt anew, so that nothing holds it to the ids of before: where it does not go on from them, by its
 * template or because it tokenises the model's words otherwise, another segment begins.
 */
export class SeenTokens {
  readonly #segments: Segment[] = [];
  readonly #logprobs: (number[] | null)[] = [];

  /** Calls have to be told in order, and none left out. */
  add({ promptIds, ids, logprobs }: Call): void {
    this.#prompted(promptIds).append("sampled", ids, this.turns);
    this.#logprobs.push(logprobs);
  }

  get turns(): number {
    return this.#logprobs.length;
  }

  segments(): TokenSegment[] {
    return tokenSegments(this.#segments, this.#logprobs);
  }

  #prompted(promptIds: readonly number[]): Segment {
    const last = this.#segments.at(-1);
    if (!last) return this.#begin(new Segment(0, null), promptIds);
    const { ids } = last;
    const common = sharedLength(ids, promptIds);
    // What ended the model's turn may be another token in a history.
    const ends = common === ids.length - 1 && last.spans.at(-1)?.kind === "sampled";
    if (common < ids.length && !ends) {
      const detail = `id ${common} is ${promptIds[common]} in the engine's prompt, and was ${ids[common]}`;
      const fork = { from: last.index, common, reason: "prompt_differs", detail } as const;
      return this.#begin(new Segment(this.#segments.length, fork), promptIds);
    }
    if (ends) last.dropLast();
    last.append("observation", promptIds.slice(common));
    return last;
  }

  #begin(segment: Segment, promptIds: readonly number[]): Segment {
    segment.append("prompt", promptIds);
    this.#segments.push(segment);
    return segment;
  }
}

function sharedLength(ids: ArrayLike<number>, others: readonly number[]): number {
  let at = 0;
  while (at < ids.length && ids[at] === others[at]) at += 1;
  return at;
}
