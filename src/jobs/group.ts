import type { ErrorBody } from "../errors.ts";
import { isFiltered, type Length, lengthPenalty, type Overlong } from "./overlong.ts";
import { rewardBounds } from "./reward-bounds.ts";
import { parseRule, type RewardRule } from "./reward-rule.ts";

/**
 * Where a group is: not begun, under way, or kept for another batch; then how it ended. `pruned` could not become
 * informative any more, `ended` was not needed any more.
 */
export const GROUP_STATES = [
  "waiting",
  "running",
  "carried",
  "complete",
  "pruned",
  "ended",
  "failed",
  "cancelled",
] as const;
export type GroupState = (typeof GROUP_STATES)[number];

/** How a group comes to its end; with the text of a rule that says what it is worth. */
export type GroupPlan = {
  numSamples: number;
  /** With so many rewards it is complete, and the rest is ended. */
  completeAt: number;
  /** Rollouts that may be begun anew, over all samples. */
  maxReplacements: number;
  /** A rollout that its own doing ended without a verdict: begun anew, or left out. */
  onPolicyFailure: "replace" | "drop";
  informative: string;
  overlong: Overlong;
};

export type GroupRules = Omit<GroupPlan, "informative"> & { informative: RewardRule };

/** One of the group's samples: the rollout that stands for it now, and what came of it. */
export type Seat =
  /** Needs a rollout. */
  | { state: "vacant"; tries: number }
  | { state: "open"; tries: number }
  | { state: "scored"; tries: number; reward: number; length: Length }
  /** Ended by its own doing, without a verdict. */
  | { state: "dropped"; tries: number };

export type Group = { seats: readonly Seat[]; replacements: number };

/** How a rollout ended. */
export type MemberEnd = { reward: number; length: Length } | { error: ErrorBody };

export type GroupDecision =
  /** Goes on; the samples in `vacant` need rollouts. */
  | { type: "goes_on"; vacant: number[] }
  | { type: "complete"; informative: boolean }
  /** It can't become informative any more, whatever the open rollouts bring. */
  | { type: "pruned" }
  | { type: "failed"; why: string; error: ErrorBody };

/** @throws ServiceError `invalid_field` for a rule that can't be read. */
export function rulesOf(plan: GroupPlan): GroupRules {
  return { ...plan, informative: parseRule(plan.informative) };
}

export function createGroup({ numSamples }: Pick<GroupRules, "numSamples">): Group {
  const seats = Array.from({ length: numSamples }, () => ({ state: "vacant", tries: 0 }) as const);
  return { seats, replacements: 0 };
}

/** A rollout for `sample` is on its way. */
export function begin(group: Group, sample: number): Group {
  const { tries } = seatOf(group, sample);
  return replaceSeat(group, sample, { state: "open", tries: tries + 1 });
}

/**
 * Books the end of a sample's rollout. Only a verdict makes a reward. A rollout that failed for reasons not
 * its own counts as if it had never been: its seat is vacant again.
 */
export function settle(group: Group, sample: number, end: MemberEnd, rules: GroupRules): Group {
  const { state, tries } = seatOf(group, sample);
  if (state !== "open") throw new Error(`sample ${sample} ended, but it is ${state}`);
  if ("reward" in end) return replaceSeat(group, sample, { state: "scored", tries, ...end });
  if (end.error.boundary === "policy" && rules.onPolicyFailure === "drop") {
    return replaceSeat(group, sample, { state: "dropped", tries });
  }
  const vacated = replaceSeat(group, sample, { state: "vacant", tries });
  // Who cancels a single rollout of a group wants another in its place; that is no failure.
  if (end.error.code === "cancelled") return vacated;
  return { ...vacated, replacements: group.replacements + 1 };
}

/**
 * What is certain about a group now.
 *
 * @param lastError of the rollout that ended last, if it failed
 */
export function decide(
  group: Group,
  rules: GroupRules,
  lastError: ErrorBody | null = null,
): GroupDecision {
  if (lastError && isHopeless(lastError)) {
    return { type: "failed", why: "no other rollout of it would fare better", error: lastError };
  }
  if (lastError && group.replacements > rules.maxReplacements) {
    const why = `more than ${rules.maxReplacements} of its rollouts failed`;
    return { type: "failed", why, error: lastError };
  }
  const scored = group.seats.filter(({ state }) => state === "scored").length;
  const undecided = group.seats.filter(isUndecided).length;
  const informative = isInformative(group, rules);
  if (undecided === 0 || scored >= rules.completeAt) {
    return { type: "complete", informative: informative === true };
  }
  if (informative === false) return { type: "pruned" };
  const vacant = group.seats.flatMap(({ state }, sample) => (state === "vacant" ? [sample] : []));
  return { type: "goes_on", vacant };
}

/** True or false when that is certain, whatever the open rollouts bring; null when it is not yet. */
export function isInformative(group: Group, rules: GroupRules): boolean | null {
  const counted = countedSeats(group, rules);
  const scored = group.seats.filter(({ state }) => state === "scored").length;
  const undecided = group.seats.filter(isUndecided).length;
  const open = Math.max(0, Math.min(undecided, rules.completeAt - scored));
  const droppable = rules.onPolicyFailure === "drop" || rules.overlong.mode === "filter";
  // What is known stays known, but a group of one reward has nothing to compare.
  if (open === 0 && counted.length < Math.min(2, rules.numSamples)) return false;
  const rewards = counted.map(({ reward }) => reward);
  return rules.informative(rewardBounds(rewards, open, droppable));
}

export type CountedSeat = Extract<Seat, { state: "scored" }> & {
  sample: number;
  /** The reward to train on: with the penalty for its length. */
  shaped: number;
};

/** The samples that count in the group's figures, in order. */
export function countedSeats(group: Group, { overlong }: GroupRules): CountedSeat[] {
  return group.seats.flatMap((seat, sample) => {
    if (seat.state !== "scored" || isFiltered(overlong, seat.length)) return [];
    return [{ ...seat, sample, shaped: seat.reward + lengthPenalty(overlong, seat.length) }];
  });
}

function isUndecided({ state }: Seat): boolean {
  return state === "vacant" || state === "open";
}

/** The row or the request is at fault, so that every rollout of it ends like this. */
function isHopeless({ code, boundary, retryable }: ErrorBody): boolean {
  if (retryable || code === "cancelled") return false;
  return boundary === "client" || boundary === "task" || boundary === "sandbox";
}

function seatOf(group: Group, sample: number): Seat {
  const seat = group.seats[sample];
  if (!seat) throw new Error(`a group of ${group.seats.length} has no sample ${sample}`);
  return seat;
}

function replaceSeat(group: Group, sample: number, seat: Seat): Group {
  return { ...group, seats: group.seats.with(sample, seat) };
}
