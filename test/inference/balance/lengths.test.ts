import { describe, expect, test } from "bun:test";
import { Lengths } from "../../../src/inference/balance/lengths.ts";
import { hasRoom } from "../../../src/inference/balance/room.ts";

function lengths(...finished: number[]): Lengths {
  const known = new Lengths(1_000);
  for (const length of finished) known.add(length);
  return known;
}

describe("what is still to come", () => {
  test("is a guess at first, and then what others sampled after they had come so far", () => {
    expect(lengths().expectedAfter(0)).toBe(1_000);
    const known = lengths(100, 200, 900);
    expect([0, 150, 700].map((tokens) => known.expectedAfter(tokens))).toEqual([400, 400, 200]);
  });

  test("of one that is longer than all is much, but no more than is known of them", () => {
    expect(lengths(100, 200, 300).expectedAfter(250)).toBe(50);
    expect(lengths(100, 200, 300).expectedAfter(5_000)).toBe(300);
  });

  test("is learnt from the last ones only", () => {
    const known = lengths(...Array(600).fill(100), ...Array(512).fill(7));
    expect(known.expectedAfter(0)).toBe(7);
  });
});

describe("the mean length in the end", () => {
  test("counts what those have already that still go on, as those that ended are the shorter ones", () => {
    const known = lengths(...Array(9).fill(1_000));
    expect([known.meanInTheEnd(0), known.meanInTheEnd(90_000)]).toEqual([1_000, 10_000]);
  });
});

describe("a backend's memory", () => {
  test("has room while contexts fit with half of what they will grow", () => {
    const room = (live: number, contextTokens: number) =>
      hasRoom({ kvTokens: 100_000, live, contextTokens }, 10_000);
    expect([room(17, 0), room(18, 0)]).toEqual([true, false]);
    expect([room(8, 80_000), room(9, 90_000)]).toEqual([true, false]);
  });

  test("that is not known, or holds nothing, always has room", () => {
    expect(hasRoom({ kvTokens: null, live: 99, contextTokens: 1e9 }, 10_000)).toBe(true);
    expect(hasRoom({ kvTokens: 1_000, live: 0, contextTokens: 0 }, 10_000)).toBe(true);
  });
});
