import { describe, expect, test } from "bun:test";
import { isWorthMoving } from "../../../src/inference/balance/relief.ts";

describe("a move is worth its while", () => {
  const mover = { contextTokens: 10_000, expectedTokens: 3_000, turnsHere: 4 };
  const from = { live: 8, contextTokens: 100_000 };

  test("where the reads that it saves are more than what it costs all who live there", () => {
    // 3,000 tokens save 90,000 reads each; its 10,000 tokens of context cost 1,000 reads each, for everyone.
    const to = (live: number) => isWorthMoving(mover, from, { live, contextTokens: 0 });
    expect([to(0), to(25), to(26)]).toEqual([true, true, false]);
  });

  test("only to where less is read afterwards", () => {
    const to = (contextTokens: number) => isWorthMoving(mover, from, { live: 0, contextTokens });
    expect([to(80_000), to(90_000), to(100_000)]).toEqual([true, false, false]);
  });

  test("not for one that is about to end, or has moved just now", () => {
    const to = { live: 4, contextTokens: 50_000 };
    expect(isWorthMoving(mover, from, to)).toBe(true);
    expect(isWorthMoving({ ...mover, expectedTokens: 100 }, from, to)).toBe(false);
    expect(isWorthMoving({ ...mover, turnsHere: 3 }, from, to)).toBe(false);
  });
});
