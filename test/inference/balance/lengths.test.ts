import { describe, expect, test } from "bun:test";
import { Lengths } from "../../../src/inference/balance/lengths.ts";

function lengths(finished: number[], living: number[] = []): Lengths {
  const known = new Lengths(1_000, () => living);
  for (const length of finished) known.add(length);
  return known;
}

describe("what is still to come", () => {
  test("is a guess at first, and then what others sampled after they had come so far", () => {
    expect(lengths([]).expectedAfter(0)).toBe(1_000);
    const known = lengths([100, 200, 900]);
    const expected = [0, 150, 700].map((tokens) => known.expectedAfter(tokens));
    for (const [index, tokens] of [400, 400, 200].entries()) {
      expect(expected[index]).toBeCloseTo(tokens);
    }
  });

  test("counts those that still go on as longer than what they have", () => {
    // Two of four ended at 100; of those that reach 300, half end there and half go on beyond all.
    const known = lengths([100, 100, 300], [300]);
    const beyond = known.expectedAfter(400);
    expect(known.expectedAfter(0)).toBeCloseTo(200 + beyond / 4);
    expect(known.expectedAfter(0)).toBeGreaterThan(lengths([100, 100, 300]).expectedAfter(0));
  });

  test("of one that is longer than all is what all sampled together for each end that was seen", () => {
    // The first guess counts as sixteen ends.
    expect(lengths(Array(16).fill(500)).expectedAfter(5_000)).toBe(750);
    expect(lengths(Array(16).fill(500), Array(16).fill(500)).expectedAfter(5_000)).toBe(1_000);
  });

  test("is learnt from the last ones only", () => {
    const known = lengths([...Array(600).fill(100), ...Array(512).fill(7)]);
    expect(known.expectedAfter(0)).toBeCloseTo(7);
  });
});
