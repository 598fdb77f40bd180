import { describe, expect, test } from "bun:test";
import { aggregate } from "../../../src/compat/nemo-gym/aggregate.ts";

const rewards = (task: number, ...values: number[]) =>
  values.map((reward) => ({ reward, _ng_task_index: task }));

describe("aggregated metrics", () => {
  test("are means, and pass@k in percent over each task's rollouts", () => {
    const rows = [...rewards(0, 1, 0, 0, 0), ...rewards(1, 1, 1, 1, 1)];
    const { key_metrics, group_level_metrics } = aggregate(rows);
    expect(key_metrics).toEqual({
      "mean/reward": 0.625,
      "pass@1/reward": 62.5,
      "pass@2/reward": 75,
      "pass@4/reward": 100,
    });
    expect(group_level_metrics).toEqual([
      { _ng_task_index: 0, "mean/reward": 0.25 },
      { _ng_task_index: 1, "mean/reward": 1 },
    ]);
  });

  test("leave out what has no verdict, and count it", () => {
    const failed = { reward: 0, _ng_task_index: 0, _ng_failure_class: "sandbox_start_failed" };
    const { agent_metrics } = aggregate([...rewards(0, 1), failed]);
    expect(agent_metrics).toMatchObject({ "mean/reward": 1, failures: 1 });
    expect(aggregate([]).key_metrics).toEqual({ "mean/reward": 0 });
  });
});
