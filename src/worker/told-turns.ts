import type { Told } from "../agent/dialogue.ts";
import type { ToldTurns } from "../agent/paced-dialogue.ts";
import type { TokenSegment, Trajectory } from "../trajectory/record.ts";

/** What a record says that a dialogue needs to be at its end again. @param record a trajectory as JSON */
export function toldTurns(record: string): ToldTurns {
  const { messages, turns, segments } = JSON.parse(record) as Trajectory;
  const told = turns.map((turn, index): Told => {
    const message = messages[turn.message];
    if (message?.role !== "assistant")
      throw new Error(`the record has no message of turn ${index}`);
    return { turn, message, sampled: sampledIn(segments, index) };
  });
  return { messages, turns: told };
}

/** From the first segment that has the turn: in later ones it is part of a prompt, if it is there at all. */
function sampledIn(segments: readonly TokenSegment[], turn: number): Told["sampled"] {
  for (const { ids, spans, logprobs } of segments) {
    let before = 0;
    for (const span of spans) {
      const { start, end, dropped } = span;
      if (span.turn === turn) {
        const sampled = [...ids.slice(start, end), ...(dropped === undefined ? [] : [dropped])];
        const given = logprobs?.slice(before, before + end - start) ?? null;
        return { promptIds: ids.slice(0, start), ids: sampled, logprobs: given };
      }
      if (span.kind === "sampled") before += end - start;
    }
  }
  return null;
}
