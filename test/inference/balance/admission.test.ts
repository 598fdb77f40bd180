import { describe, expect, test } from "bun:test";
import {
  type Admission,
  adjusted,
  type EngineSample,
  UNLIMITED,
} from "../../../src/inference/balance/admission.ts";

const BOUNDS = { floor: 4, ceiling: 1_000 };

/** The limits after each of `samples`, of a backend that has as many turns as it may, and more that wait. */
function limits(first: number, ...samples: Partial<EngineSample>[]): number[] {
  let admission: Admission = { ...UNLIMITED, limit: first };
  return samples.map((sample) => {
    const seen = { kvUse: 0.5, turns: admission.limit, waiting: 0, preemptions: 0, ...sample };
    admission = adjusted({ ...admission, reached: true }, seen, BOUNDS);
    return admission.limit;
  });
}

describe("the turns of a backend at once", () => {
  test("have no limit at first, and then one of what an engine had when it had too much", () => {
    const { limit } = UNLIMITED;
    const turns = 30;
    expect(limits(limit, { turns }, { turns, kvUse: 0.9 })).toEqual([1_000, 1_000]);
    expect(limits(limit, { turns, preemptions: 1 })).toEqual([24]);
    expect(limits(limit, { turns, kvUse: 0.85, waiting: 1 })).toEqual([27]);
  });

  test("grow slowly while there is room and somebody waits, and only then", () => {
    expect(limits(8, {}, {}, {})).toEqual([10, 12, 15]);
    expect(limits(8, { kvUse: 0.7 }, { kvUse: 0.85 })).toEqual([9, 9]);
    const idle = adjusted(
      { limit: 8, reached: false, rest: 0 },
      { kvUse: 0.1, turns: 8, waiting: 0, preemptions: 0 },
      BOUNDS,
    );
    expect(idle.limit).toBe(8);
  });

  test("are cut at once where memory is crowded or requests are thrown out, once in a while", () => {
    const full = { kvUse: 0.99 };
    expect(limits(100, full, full, full, full)).toEqual([90, 90, 90, 81]);
    expect(limits(100, { preemptions: 1 })).toEqual([80]);
    expect(limits(100, { kvUse: 0.85, waiting: 2 })).toEqual([90]);
    expect(limits(4, { preemptions: 1 })).toEqual([4]);
  });

  test("stay as they are where the engine says nothing of its memory", () => {
    expect(limits(100, { kvUse: null, waiting: 50 })).toEqual([100]);
  });
});
