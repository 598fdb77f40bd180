import { describe, expect, test } from "bun:test";
import type { Row } from "../../src/cli/rows.ts";
import { meanReward, planRollouts } from "../../src/cli/run-collect.ts";

const PLAN = {
  prefix: "p",
  samples: 1,
  seed: 0,
  sampling: {},
  maxTurns: undefined,
  runLimitMs: undefined,
  image: undefined,
};
const ROWS = [0, 1].map((n) => ({ row: { data_source: "echo", n }, place: `rows.jsonl:${n + 1}` }));

describe("the rollouts of a file", () => {
  test("are as many per row as asked for, each with its own name and seed", () => {
    const planned = planRollouts(ROWS, { ...PLAN, samples: 2, seed: 7 });
    const rollout = (row: number, sample: number) => ({
      row,
      place: `rows.jsonl:${row + 1}`,
      sample,
      request: {
        id: `p-${row}-${sample}`,
        instance: ROWS[row]?.row as Row,
        sampling: { seed: 7 + sample },
      },
    });
    expect(planned).toEqual([rollout(0, 0), rollout(0, 1), rollout(1, 0), rollout(1, 1)]);
  });

  test("carry what was asked for, and nothing that was not", () => {
    const asked = {
      ...PLAN,
      sampling: { temperature: 0.5 },
      maxTurns: 3,
      runLimitMs: 1000,
      image: "/i",
    };
    expect(planRollouts(ROWS.slice(0, 1), asked).map(({ request }) => request)).toEqual([
      {
        id: "p-0-0",
        instance: ROWS[0]?.row as Row,
        sampling: { temperature: 0.5, seed: 0 },
        agent: { max_turns: 3 },
        limits: { run_ms: 1000 },
        image: "/i",
      },
    ]);
  });
});

describe("the mean reward", () => {
  test("leaves out what has none: that is no 0", () => {
    expect(meanReward([{ reward: 1 }, { reward: null }, { reward: 0 }])).toBe(0.5);
  });

  test("of no reward at all is null", () => {
    expect([meanReward([]), meanReward([{ reward: null }])]).toEqual([null, null]);
  });
});
