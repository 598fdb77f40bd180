import { describe, expect, test } from "bun:test";
import {
  type BatchGroup,
  type BatchPlan,
  deliverable,
  groupsWanted,
  informativeShare,
  unneeded,
} from "../../src/jobs/batch.ts";

const PLAN: BatchPlan = {
  goal: { groups: 2, tokens: null },
  keep: "cheapest",
  unfinished: "end",
  maxRollouts: null,
  oversampling: 1,
  expectedShare: 0.5,
  maxStaleness: null,
  stale: "end",
  maxFailedGroups: 8,
};

/** Groups by position: `c` is complete, `+` certain to be informative, `?` neither. */
function begun(states: string): BatchGroup[] {
  return [...states].map((state, seq) => ({
    ...{ seq, position: seq, startedMs: 0, complete: state === "c" },
    informative: state === "?" ? null : true,
  }));
}

const seqs = (groups: BatchGroup[]) => groups.map(({ seq }) => seq);

test("the share of informative groups begins with what is expected and follows what is seen", () => {
  expect(informativeShare({ informative: 0, decided: 0 }, 0.5)).toBe(0.5);
  expect(informativeShare({ informative: 0, decided: 16 }, 0.5)).toBe(0.1);
  expect(informativeShare({ informative: 96, decided: 96 }, 0.5)).toBe(0.98);
});

describe("the groups that are wanted", () => {
  test("are those that it takes at that share, times the oversampling", () => {
    expect(groupsWanted(PLAN, 4, [], 0.5)).toBe(8);
    expect(groupsWanted(PLAN, 4, begun("++?"), 0.5)).toBe(3);
    expect(groupsWanted({ ...PLAN, oversampling: 1.5 }, 4, begun("?"), 0.5)).toBe(11);
    expect(groupsWanted(PLAN, 1, begun("++"), 0.5)).toBe(0);
    expect(groupsWanted(PLAN, 0, [], 0.5)).toBe(0);
  });

  test("are as many as there are slots for, where nothing is begun in vain", () => {
    expect(groupsWanted({ ...PLAN, unfinished: "keep" }, 1, begun("????"), 0.5)).toBe(
      Number.POSITIVE_INFINITY,
    );
  });
});

test("what is handed over is what is complete, or what is complete of the first that were begun", () => {
  expect(seqs(deliverable(PLAN, 2, begun("?c+cc")))).toEqual([1, 3]);
  expect(seqs(deliverable({ keep: "first_started" }, 2, begun("cc?cc")))).toEqual([0, 1]);
  expect(seqs(deliverable({ keep: "first_started" }, 3, begun("c?ccc")))).toEqual([0]);
});

describe("what nobody needs", () => {
  const work = ({ seq }: BatchGroup) => [5, 40, 20, 30][seq] ?? 0;

  test("is nothing as long as the goal is not certain", () => {
    expect(unneeded(PLAN, 2, begun("+???"), work)).toEqual([]);
    expect(unneeded({ ...PLAN, unfinished: "keep" }, 1, begun("++++"), work)).toEqual([]);
  });

  test("is where the least work is lost, and never what is complete", () => {
    expect(seqs(unneeded(PLAN, 2, begun("++++"), work))).toEqual([0, 2]);
    expect(seqs(unneeded(PLAN, 2, begun("c+?+"), work))).toEqual([2, 3]);
    expect(seqs(unneeded({ ...PLAN, oversampling: 2 }, 1, begun("++++"), work))).toEqual([0, 2]);
  });

  test("is what was begun last, where the order counts", () => {
    const plan = { ...PLAN, keep: "first_started" } as const;
    expect(seqs(unneeded(plan, 2, begun("?+?+?+"), work))).toEqual([4, 5]);
  });
});
