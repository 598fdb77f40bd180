import { describe, expect, test } from "bun:test";
import {
  isThrashing,
  mayLeave,
  NO_THRASH,
  thrashAfter,
} from "../../../src/inference/balance/thrash.ts";

const WELL = { preemptions: 0, hitShare: 0.9 };
const BAD = { preemptions: 3, hitShare: 0.2 };

function after(...samples: Parameters<typeof thrashAfter>[1][]): boolean {
  return isThrashing(samples.reduce(thrashAfter, NO_THRASH));
}

describe("an engine thrashes", () => {
  test("when it throws requests out and its cache has collapsed, in two looks in a row", () => {
    expect([after(WELL, BAD), after(WELL, BAD, BAD)]).toEqual([false, true]);
    expect(after(WELL, BAD, WELL, BAD)).toBe(false);
    expect(after(WELL, BAD, { preemptions: 0, hitShare: null }, BAD)).toBe(true);
  });

  test("not by one of the two alone, and not where its cache never was better", () => {
    const missing = { preemptions: 0, hitShare: 0.1 };
    const thrown = { preemptions: 9, hitShare: 0.8 };
    expect([after(WELL, missing, missing), after(WELL, thrown, thrown)]).toEqual([false, false]);
    expect(after(BAD, BAD, BAD)).toBe(false);
  });
});

describe("a trajectory leaves a thrashing backend", () => {
  const crowd = { live: 40, contextTokens: 40_000, movedAtMs: [] as number[] };
  const small = { contextTokens: 900, turnsHere: 4 };

  test("when it is one of the smaller ones and has been there for some turns", () => {
    expect(mayLeave(small, crowd, 0)).toBe(true);
    expect(mayLeave({ ...small, contextTokens: 2_000 }, crowd, 0)).toBe(false);
    expect(mayLeave({ ...small, turnsHere: 3 }, crowd, 0)).toBe(false);
    expect(mayLeave(small, { ...crowd, live: 1, contextTokens: 900 }, 0)).toBe(false);
  });

  test("with few others in a minute", () => {
    expect(mayLeave(small, { ...crowd, movedAtMs: [0, 1] }, 1_000)).toBe(false);
    expect(mayLeave(small, { ...crowd, movedAtMs: [0, 1] }, 60_000 + 1)).toBe(true);
  });
});
