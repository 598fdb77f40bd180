import { describe, expect, test } from "bun:test";
import { advantages, tokenWeight } from "../../src/jobs/advantages.ts";
import { isFiltered, lengthPenalty } from "../../src/jobs/overlong.ts";

describe("advantages", () => {
  test("of GRPO and DAPO are distances from the mean in standard deviations", () => {
    const std = Math.sqrt(1 / 3);
    for (const kind of ["grpo", "dapo"] as const) {
      const values = advantages(kind, [0, 0, 1, 1]);
      for (const [index, sign] of [-1, -1, 1, 1].entries()) {
        expect(values[index]).toBeCloseTo((sign * 0.5) / (std + 1e-6), 12);
      }
    }
  });

  test("of leave-one-out are distances from the mean of the others", () => {
    const rewards = [0.25, 1, 0.5];
    const values = advantages("rloo", rewards);
    expect(values[0]).toBeCloseTo(0.25 - 0.75, 12);
    expect(values[1]).toBeCloseTo(1 - 0.375, 12);
    expect(values[2]).toBeCloseTo(0.5 - 0.625, 12);
  });

  test("are nothing where all rewards are equal, or there is only one", () => {
    for (const kind of ["grpo", "rloo", "dapo"] as const) {
      expect(advantages(kind, [1, 1, 1]).every((value) => value === 0)).toBe(true);
      expect(advantages(kind, [1])).toEqual([0]);
      expect(advantages(kind, [])).toEqual([]);
    }
  });
});

test("every token of a group weighs the same; where one engine does not count, none does", () => {
  expect(tokenWeight([100, 300])).toBe(1 / 400);
  expect(tokenWeight([100, null])).toBeNull();
  expect(tokenWeight([])).toBeNull();
});

describe("overlong rollouts", () => {
  const soft = { mode: "penalty", maxTokens: 1000, bufferTokens: 200, factor: 1 } as const;
  const length = (tokens: number | null, truncated = false) => ({ tokens, truncated });

  test("lose up to 1 over the buffer before the limit, in a line", () => {
    const penalties = [0, 800, 850, 1000, 5000].map((tokens) =>
      lengthPenalty(soft, length(tokens)),
    );
    expect(penalties).toEqual([0, 0, -0.25, -1, -1]);
    expect(lengthPenalty({ ...soft, factor: 0.5 }, length(1000))).toBe(-0.5);
    expect(lengthPenalty({ ...soft, bufferTokens: 0 }, length(1001))).toBe(-1);
    expect(lengthPenalty(soft, length(null))).toBe(0);
  });

  test("are left out where they are to be filtered, and only there", () => {
    const filter = { mode: "filter", maxTokens: 100 } as const;
    expect(isFiltered(filter, length(101))).toBe(true);
    expect(isFiltered(filter, length(5, true))).toBe(true);
    expect(isFiltered(filter, length(100))).toBe(false);
    expect(isFiltered({ mode: "filter", maxTokens: null }, length(1e9))).toBe(false);
    expect(isFiltered(soft, length(9999, true))).toBe(false);
    expect(isFiltered({ mode: "keep" }, length(9999, true))).toBe(false);
  });
});
