import { describe, expect, test } from "bun:test";
import { messageTokens } from "../../../src/compat/prorl/message-tokens.ts";
import { ServiceError } from "../../../src/errors.ts";
import type { TokenSegment, Turn } from "../../../src/trajectory/record.ts";

const OPEN = 7;

type Stretch = [kind: TokenSegment["spans"][number]["kind"], ...ids: number[]];

/** A segment of stretches in order; a sampled id's log-probability is its tenth, negative. */
function segmentOf(...stretches: Stretch[]): TokenSegment {
  const ids: number[] = [];
  const logprobs: number[] = [];
  const spans = stretches.map(([kind, ...own]) => {
    const start = ids.length;
    ids.push(...own);
    const sampled = kind === "sampled";
    if (sampled) logprobs.push(...own.map((id) => -id / 10));
    return { kind, start, end: ids.length, mask: sampled ? (1 as const) : (0 as const) };
  });
  return { ids, spans, logprobs, fork: null };
}

const turnsAt = (...messages: number[]) => messages.map((message) => ({ message }) as Turn);

/** What a trainer relies on: what comes before an assistant's message is what its engine saw. */
function expectContiguous(dealt: ReturnType<typeof messageTokens>) {
  const before: number[] = [];
  for (const { token_ids, input_ids, logprobs } of dealt) {
    expect(token_ids.length).toBeGreaterThan(0);
    if (input_ids) expect(input_ids).toEqual(before);
    if (input_ids) expect(logprobs).toHaveLength(token_ids.length);
    before.push(...token_ids);
  }
}

describe("dealing ids out to messages", () => {
  test("each message gets its own, cut where a turn opens", () => {
    const segment = segmentOf(
      ["prompt", OPEN, 1, 2, OPEN, 3, 4, OPEN, 5],
      ["sampled", 11, 12],
      ["observation", 9, OPEN, 6, OPEN, 5],
      ["sampled", 13],
    );
    const dealt = messageTokens({ segments: [segment], turns: turnsAt(2, 4) }, true);
    expect(dealt.map(({ token_ids }) => token_ids)).toEqual([
      [OPEN, 1, 2],
      [OPEN, 3, 4, OPEN, 5],
      [11, 12],
      [9, OPEN, 6, OPEN, 5],
      [13],
    ]);
    expect(dealt[4]).toEqual({
      token_ids: [13],
      input_ids: segment.ids.slice(0, -1),
      logprobs: [-1.3],
    });
    expectContiguous(dealt);
  });

  test("tool results that the template writes as one turn each get some", () => {
    const segment = segmentOf(
      ["prompt", OPEN, 1, OPEN, 5],
      ["sampled", 11],
      ["observation", 9, 8, 8, 8],
      ["sampled", 12],
    );
    const dealt = messageTokens({ segments: [segment], turns: turnsAt(1, 4) }, true);
    expect(dealt).toHaveLength(5);
    expectContiguous(dealt);
  });

  test("a turn that was broken off and resumed is one message", () => {
    const segment = segmentOf(["prompt", OPEN, 1], ["sampled", 11], ["sampled", 12, 13]);
    const dealt = messageTokens({ segments: [segment], turns: turnsAt(1) }, true);
    expect(dealt[1]?.token_ids).toEqual([11, 12, 13]);
    expect(dealt[1]?.logprobs).toEqual([-1.1, -1.2, -1.3]);
  });

  test("whole prompts are left out where they are not asked for", () => {
    const segment = segmentOf(["prompt", OPEN, 1], ["sampled", 11]);
    const dealt = messageTokens({ segments: [segment], turns: turnsAt(1) }, false);
    expect(dealt[1]?.input_ids).toBeNull();
  });

  test("what is not one sequence with a stretch per turn is refused, not guessed at", () => {
    const segment = segmentOf(["prompt", OPEN, 1], ["sampled", 11]);
    const two = () => messageTokens({ segments: [segment, segment], turns: turnsAt(1) }, true);
    const short = () => messageTokens({ segments: [segment], turns: turnsAt(1, 3) }, true);
    expect(two).toThrow(ServiceError);
    expect(short).toThrow(ServiceError);
  });
});
