import type { ErrorBody } from "../errors.ts";
import { createGroup, type Group, type GroupRules, type MemberEnd, type Seat } from "./group.ts";
import type { State } from "./job.ts";
import type { Length } from "./overlong.ts";

/** A rollout of a group, as far as the group is concerned with it. */
export type Member = {
  sample: number;
  state: State;
  reward: number | null;
  error: ErrorBody | null;
  length: Length;
};

/** How a rollout that is over ended. */
export function memberEnd({ state, reward, error, length }: Omit<Member, "sample">): MemberEnd {
  if (state === "succeeded" && reward !== null) return { reward, length };
  if (error) return { error };
  throw new Error(`a rollout of a group is ${state} without reward or error`);
}

/**
 * A group as its rollouts left it, in the order in which they were begun. This is what a service that
 * starts knows of the groups of its predecessor.
 */
export function groupOf(members: readonly Member[], rules: GroupRules): Group {
  const seats: Seat[] = [...createGroup(rules).seats];
  let replacements = 0;
  for (const member of members) {
    const { sample } = member;
    const tries = (seats[sample]?.tries ?? 0) + 1;
    seats[sample] = seatAfter(member, tries, rules);
    if (seats[sample].state === "vacant" && member.state === "failed") replacements++;
  }
  return { seats, replacements };
}

function seatAfter(member: Member, tries: number, { onPolicyFailure }: GroupRules): Seat {
  if (member.state === "pending" || member.state === "active") return { state: "open", tries };
  const end = memberEnd(member);
  if ("reward" in end) return { state: "scored", tries, ...end };
  const dropped = end.error.boundary === "policy" && onPolicyFailure === "drop";
  return { state: dropped ? "dropped" : "vacant", tries };
}

/** Stops that a limit caused rather than the model. */
const TRUNCATED = ["length", "context", "max_turns"];

/** A rollout as it is stored. */
type StoredMember = {
  sample: number | null;
  state: State;
  reward: number | null;
  /** JSON texts. */
  error: string | null;
  outcome: string | null;
  sampled_tokens: number | null;
};

export function toMember(row: StoredMember): Member {
  const outcome = row.outcome === null ? null : JSON.parse(row.outcome);
  const truncated = TRUNCATED.includes(outcome?.stop_reason);
  return {
    sample: row.sample ?? 0,
    state: row.state,
    reward: row.reward,
    error: row.error === null ? null : JSON.parse(row.error),
    length: { tokens: row.sampled_tokens, truncated },
  };
}
