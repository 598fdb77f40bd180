import { describe, expect, test } from "bun:test";
import {
  type Admission,
  adjusted,
  type EngineSample,
  firstAdmission,
} from "../../../src/inference/balance/admission.ts";

const BOUNDS = { floor: 4, ceiling: 1_000 };

/** The limits after each of `samples`; somebody always waits for more. */
function limits(first: number, ...samples: Partial<EngineSample>[]): number[] {
  let admission: Admission = { limit: first, reached: false, rest: 0 };
  return samples.map((sample) => {
    const seen = { kvUse: 0.5, waiting: 0, preemptions: 0, ...sample };
    admission = adjusted({ ...admission, reached: true }, seen, BOUNDS);
    return admission.limit;
  });
}

describe("the turns of a backend at once", () => {
  test("begin with as many as fit, or with the ceiling where memory is not known", () => {
    const firsts = [20.7, 1, 99_999, null].map((fitting) => firstAdmission(fitting, BOUNDS).limit);
    expect(firsts).toEqual([20, 4, 1_000, 1_000]);
  });

  test("grow slowly while there is room and somebody waits, and only then", () => {
    expect(limits(8, {}, {}, {})).toEqual([10, 12, 15]);
    expect(limits(8, { kvUse: 0.7 }, { kvUse: 0.85 })).toEqual([8, 8]);
    const idle = adjusted(
      { limit: 8, reached: false, rest: 0 },
      { kvUse: 0.1, waiting: 0, preemptions: 0 },
      BOUNDS,
    );
    expect(idle.limit).toBe(8);
  });

  test("are cut at once where memory is crowded or requests are thrown out, once in a while", () => {
    expect(limits(100, { kvUse: 0.95 }, { kvUse: 0.95 }, { kvUse: 0.95 }, { kvUse: 0.95 })).toEqual(
      [90, 90, 90, 81],
    );
    expect(limits(100, { preemptions: 1 })).toEqual([80]);
    expect(limits(100, { kvUse: 0.85, waiting: 2 })).toEqual([90]);
    expect(limits(4, { preemptions: 1 })).toEqual([4]);
  });

  test("stay as they are where the engine says nothing of its memory", () => {
    expect(limits(100, { kvUse: null, waiting: 50 })).toEqual([100]);
  });
});
