import type { ErrorBody } from "../errors.ts";
import { type AdvantageKind, advantages, tokenWeight } from "../jobs/advantages.ts";
import {
  type CountedSeat,
  countedSeats,
  type GroupPlan,
  type GroupState,
  rulesOf,
} from "../jobs/group.ts";
import { groupOf, toMember } from "../jobs/members.ts";
import { rewardBounds } from "../jobs/reward-bounds.ts";
import type { Remains } from "../store/remains.ts";
import type { GroupRow, JobRow } from "../store/tables.ts";
import { type RolloutView, viewRollout } from "./view.ts";

/** The rollout that stands for one sample of a group. */
export type MemberView = {
  sample: number;
  /** Of the rollout; null as long as none has begun. */
  id: string | null;
  /** `dropped` and `filtered` do not count in the group's figures. */
  state: "waiting" | "scored" | "filtered" | "dropped";
  reward: number | null;
  /** The reward to train on, with the penalty for its length. */
  shaped_reward: number | null;
  advantage: number | null;
  tokens: number | null;
  rollout: RolloutView | null;
};

/** A group as clients see it. Its figures are over the rewards that count. */
export type GroupView = {
  id: string;
  state: GroupState;
  /** Null until that is certain. */
  informative: boolean | null;
  num_samples: number;
  /** Shapes: one entry for each reward that counts, in the order of the samples. */
  rewards: number[];
  mean: number | null;
  std: number | null;
  spread: number | null;
  advantages: AdvantageKind | null;
  /** DAPO's weight of one token in the loss; null where it was not asked for or tokens are not known. */
  token_weight: number | null;
  members: MemberView[];
  /** Rollouts that broke and were begun anew. They count nowhere. */
  replaced: RolloutView[];
  instance: unknown;
  error: ErrorBody | null;
  created_at: string;
  started_at: string | null;
  finished_at: string | null;
};

/**
 * @param jobs all rollouts of the group, in the order in which they were begun
 * @param remains what stayed of those that retention has removed: then there are rewards, and no advantages
 */
export function viewGroup(
  row: GroupRow,
  jobs: JobRow[],
  kind: AdvantageKind | null,
  remains: Remains[] = [],
): GroupView {
  if (remains.length > 0) return viewRemains(viewGroup(row, jobs, null), remains);
  const rules = rulesOf(JSON.parse(row.rules) as GroupPlan);
  const group = groupOf(jobs.map(toMember), rules);
  const counted = countedSeats(group, rules);
  const last = new Map(jobs.map((job) => [job.sample, job]));
  const given = kind && advantagesBySample(kind, counted);
  const rewards = counted.map(({ reward }) => reward);
  const figures = rewards.length > 0 ? rewardBounds(rewards, 0, false) : null;
  return {
    id: row.id,
    state: row.state,
    informative: row.informative === null ? null : row.informative === 1,
    num_samples: rules.numSamples,
    rewards,
    mean: figures?.mean.lo ?? null,
    std: figures?.std.lo ?? null,
    spread: figures?.spread.lo ?? null,
    advantages: kind,
    token_weight: kind === "dapo" ? tokenWeight(counted.map(({ length }) => length.tokens)) : null,
    members: group.seats.map(({ state }, sample) => {
      const seat = counted.find((candidate) => candidate.sample === sample);
      const job = last.get(sample);
      return {
        sample,
        id: job?.id ?? null,
        state: state === "scored" ? (seat ? "scored" : "filtered") : waitingUnlessDropped(state),
        reward: job?.reward ?? null,
        shaped_reward: seat?.shaped ?? null,
        advantage: given?.get(sample) ?? null,
        tokens: job?.sampled_tokens ?? null,
        rollout: job ? viewRollout(job) : null,
      };
    }),
    replaced: jobs.filter((job) => last.get(job.sample) !== job).map(viewRollout),
    instance: JSON.parse(row.instance),
    error: row.error === null ? null : JSON.parse(row.error),
    created_at: new Date(row.created_ms).toISOString(),
    started_at: isoTime(row.started_ms),
    finished_at: isoTime(row.finished_ms),
  };
}

/** A group that has lost rollouts: a sample is its rollout's, where that is there, or what stayed of it. */
function viewRemains(view: GroupView, remains: Remains[]): GroupView {
  const left = new Map(remains.map((one) => [one.sample, one]));
  const members = view.members.map((member): MemberView => {
    const one = left.get(member.sample);
    if (member.rollout || !one) return member;
    const { id, reward, tokens } = one;
    return { ...member, id, reward, tokens, state: reward === null ? "dropped" : "scored" };
  });
  const rewards = members.flatMap(({ reward }) => (reward === null ? [] : [reward]));
  const figures = rewards.length > 0 ? rewardBounds(rewards, 0, false) : null;
  const [mean = null, std = null, spread = null] = figures
    ? [figures.mean.lo, figures.std.lo, figures.spread.lo]
    : [];
  return { ...view, members, rewards, mean, std, spread };
}

function waitingUnlessDropped(state: "vacant" | "open" | "dropped"): "waiting" | "dropped" {
  return state === "dropped" ? "dropped" : "waiting";
}

function advantagesBySample(kind: AdvantageKind, counted: CountedSeat[]): Map<number, number> {
  const values = advantages(
    kind,
    counted.map(({ shaped }) => shaped),
  );
  return new Map(counted.map(({ sample }, index) => [sample, values[index] ?? 0]));
}

function isoTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
