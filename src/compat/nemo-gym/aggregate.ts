import { z } from "zod";

const bodySchema = z.looseObject({
  verify_responses: z.array(z.looseObject({ reward: z.number() })),
});

export const aggregateSchema = bodySchema;

type Row = z.output<typeof bodySchema>["verify_responses"][number];

type Metrics = Record<string, number>;

/**
 * Means over all rollouts and pass@k over the rollouts of each task, in percent as NeMo Gym has it. Rollouts
 * without a verdict are left out, and counted.
 */
export function aggregate(rows: Row[]): {
  group_level_metrics: Metrics[];
  agent_metrics: Metrics;
  key_metrics: Metrics;
} {
  const scored = rows.filter((row) => row._ng_failure_class === undefined);
  const groups = Map.groupBy(scored, (row, index) => row._ng_task_index ?? `row ${index}`);
  const sizes = [...groups.values()].map((group) => group.length);
  const most = sizes.length === 0 ? 0 : Math.min(...sizes);
  const passes: Metrics = {};
  for (let k = 1; k <= most; k *= 2) {
    const shares = [...groups.values()].map((group) => passAt(k, group));
    passes[`pass@${k}/reward`] = 100 * mean(shares);
  }
  const means = { "mean/reward": mean(scored.map(({ reward }) => reward)) };
  return {
    group_level_metrics: [...groups].map(([task, group]) => ({
      ...(typeof task === "number" && { _ng_task_index: task }),
      "mean/reward": mean(group.map(({ reward }) => reward)),
    })),
    agent_metrics: { ...means, ...passes, failures: rows.length - scored.length },
    key_metrics: { ...means, ...passes },
  };
}

/** The chance that one of k draws without replacement is solved. */
function passAt(k: number, group: Row[]): number {
  const n = group.length;
  const wrong = group.filter(({ reward }) => reward <= 0.99).length;
  let allWrong = 1;
  for (let drawn = 0; drawn < k; drawn++) allWrong *= Math.max(0, wrong - drawn) / (n - drawn);
  return 1 - allWrong;
}

function mean(values: number[]): number {
  return values.length === 0 ? 0 : values.reduce((sum, value) => sum + value, 0) / values.length;
}
