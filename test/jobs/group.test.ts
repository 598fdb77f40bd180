import { describe, expect, test } from "bun:test";
import { ERRORS, type ErrorBody, type ErrorCode } from "../../src/errors.ts";
import {
  begin,
  createGroup,
  decide,
  type Group,
  type GroupPlan,
  rulesOf,
  settle,
} from "../../src/jobs/group.ts";
import { groupOf, type Member, memberEnd } from "../../src/jobs/members.ts";
import { randomFrom } from "../support/random.ts";

const PLAN: GroupPlan = {
  numSamples: 4,
  completeAt: 4,
  maxReplacements: 2,
  onPolicyFailure: "replace",
  informative: "spread > 0",
  overlong: { mode: "keep" },
};
const LENGTH = { tokens: 10, truncated: false };

function failure(code: ErrorCode): ErrorBody {
  const { boundary, retryable } = ERRORS[code];
  return { code, message: `${code} happened`, boundary, retryable };
}

/** A group of which each sample ended as given: a reward, an error, or not at all. */
function groupAfter(plan: GroupPlan, ends: (number | ErrorCode | null)[]): Group {
  const rules = rulesOf(plan);
  let group = createGroup(rules);
  for (let sample = 0; sample < plan.numSamples; sample++) group = begin(group, sample);
  for (const [sample, end] of ends.entries()) {
    if (end === null) continue;
    const memberEnded =
      typeof end === "number" ? { reward: end, length: LENGTH } : { error: failure(end) };
    group = settle(group, sample, memberEnded, rules);
  }
  return group;
}

const decideAfter = (plan: GroupPlan, ends: (number | ErrorCode | null)[]) =>
  decide(groupAfter(plan, ends), rulesOf(plan));

describe("a group", () => {
  test("is complete when every sample has its reward, and informative when they differ", () => {
    expect(decideAfter(PLAN, [0, 1, 1])).toEqual({ type: "goes_on", vacant: [] });
    expect(decideAfter(PLAN, [0, 1, 1, 1])).toEqual({ type: "complete", informative: true });
    expect(decideAfter(PLAN, [1, 1, 1, 1])).toEqual({ type: "complete", informative: false });
  });

  test("is pruned as soon as nothing that is to come could make it informative", () => {
    const plan = { ...PLAN, informative: "std > 0.45" };
    expect(decideAfter(plan, [0, 0])).toEqual({ type: "goes_on", vacant: [] });
    expect(decideAfter(plan, [0, 0, 0])).toEqual({ type: "pruned" });
  });

  test("is complete with the rewards that it needs, and does not wait for the others", () => {
    const plan = { ...PLAN, completeAt: 2 };
    expect(decideAfter(plan, [null, 1, null, 0])).toEqual({ type: "complete", informative: true });
  });

  test("needs another rollout in the place of one that broke, which counts nowhere", () => {
    expect(decideAfter(PLAN, [1, "sandbox_died", 1])).toEqual({ type: "goes_on", vacant: [1] });
    expect(groupAfter(PLAN, [1, "sandbox_died"]).replacements).toBe(1);
    expect(groupAfter(PLAN, [1, "cancelled"]).replacements).toBe(0);
  });

  test("fails when more broke than may be replaced, or when no other could fare better", () => {
    const rules = rulesOf({ ...PLAN, maxReplacements: 1 });
    const broken = groupAfter(PLAN, ["engine_timeout", "engine_timeout"]);
    expect(decide(broken, rules, failure("engine_timeout"))).toMatchObject({
      type: "failed",
      why: "more than 1 of its rollouts failed",
    });
    const hopeless = failure("image_not_found");
    const decision = decide(groupAfter(PLAN, ["image_not_found"]), rulesOf(PLAN), hopeless);
    expect(decision).toMatchObject({ type: "failed", error: { code: "image_not_found" } });
  });

  test("leaves out what the policy's own doing ended, if it is told to", () => {
    const plan = { ...PLAN, onPolicyFailure: "drop" } as const;
    expect(decideAfter(plan, [0, "oom", 1, 1])).toEqual({ type: "complete", informative: true });
    expect(decideAfter(plan, ["oom", "oom", "oom", 1])).toEqual({
      type: "complete",
      informative: false,
    });
    expect(decideAfter(PLAN, [0, "oom", 1, 1])).toEqual({ type: "goes_on", vacant: [1] });
  });

  test("does not count rollouts that a limit cut off, where these are filtered", () => {
    const rules = rulesOf({ ...PLAN, overlong: { mode: "filter", maxTokens: null } });
    let group = groupAfter(PLAN, [1, 1, 1]);
    const cut = { reward: 0, length: { tokens: 10, truncated: true } };
    group = settle(group, 3, cut, rules);
    expect(decide(group, rules)).toEqual({ type: "complete", informative: false });
    expect(decide(group, rulesOf(PLAN))).toEqual({ type: "complete", informative: true });
  });
});

test("whatever the order of ends and faults, a group is decided by exactly its samples", () => {
  const codes: ErrorCode[] = ["sandbox_died", "engine_timeout", "cancelled", "oom", "image_busy"];
  const random = randomFrom(11);
  const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T;
  const seen = { complete: 0, pruned: 0, failed: 0 };
  for (let walk = 0; walk < 3000; walk++) {
    const plan: GroupPlan = {
      ...PLAN,
      numSamples: 1 + Math.floor(random() * 6),
      completeAt: 99,
      maxReplacements: Math.floor(random() * 6),
      onPolicyFailure: pick(["replace", "drop"] as const),
      informative: pick(["spread > 0", "std > 0.4", "mean > 0.2 && mean < 0.8"]),
    };
    const rules = rulesOf({ ...plan, completeAt: plan.numSamples });
    let group = createGroup(rules);
    const begun: Member[] = [];
    let decision = decide(group, rules);
    while (decision.type === "goes_on") {
      for (const sample of decision.vacant) {
        group = begin(group, sample);
        const open = { reward: null, error: null, length: LENGTH };
        begun.push({ sample, state: "pending", ...open });
      }
      const member = pick(begun.filter(({ state }) => state === "pending"));
      const error = random() < 0.3 ? failure(pick(codes)) : null;
      const end = error
        ? {
            state: error.code === "cancelled" ? ("cancelled" as const) : ("failed" as const),
            error,
          }
        : { state: "succeeded" as const, reward: random() < 0.5 ? 0 : 1 };
      Object.assign(member, end);
      group = settle(group, member.sample, memberEnd(member), rules);
      // A service that dies now and starts again knows just as much.
      expect(groupOf(begun, rules)).toEqual(group);
      decision = decide(group, rules, error);
    }
    seen[decision.type]++;
    if (decision.type !== "complete") continue;
    const rewards = group.seats.flatMap((seat) => (seat.state === "scored" ? [seat.reward] : []));
    const dropped = group.seats.filter(({ state }) => state === "dropped").length;
    expect(rewards.length + dropped).toBe(plan.numSamples);
    const given = begun.filter(({ state }) => state === "succeeded");
    expect(rewards.toSorted()).toEqual(given.map(({ reward }) => reward as number).toSorted());
  }
  for (const count of Object.values(seen)) expect(count).toBeGreaterThan(50);
});
