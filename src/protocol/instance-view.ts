import type { InstanceRow } from "../store/tables.ts";

/** How hard an instance was so far: what a curriculum is made from. */
export type InstanceView = {
  key: string;
  data_source: string;
  /** Groups that were decided, and how many of them were informative. */
  groups: number;
  informative: number;
  rollouts: number;
  mean_reward: number;
  std_reward: number;
  /** Of the group that was decided last. */
  last_mean_reward: number;
  mean_tokens: number;
  updated_at: string;
};

export function viewInstance(row: InstanceRow): InstanceView {
  const mean = row.reward_sum / row.rollouts;
  return {
    key: row.key,
    data_source: row.data_source,
    groups: row.groups,
    informative: row.informative,
    rollouts: row.rollouts,
    mean_reward: mean,
    std_reward: Math.sqrt(Math.max(0, row.reward_squares / row.rollouts - mean ** 2)),
    last_mean_reward: row.last_mean,
    mean_tokens: row.tokens / row.rollouts,
    updated_at: new Date(row.updated_ms).toISOString(),
  };
}
