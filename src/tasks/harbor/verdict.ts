import type { Verdict } from "../../verifiers/verdict.ts";
import { MAIN, meanRewards, missedThreshold, type Rewards } from "./rewards.ts";
import type { HarborInstance } from "./row.ts";
import type { VerifiedStep } from "./steps.ts";
import type { Verified } from "./verify.ts";

const MAX_LOG = 2000;

export function verdictOf({ form, warnings }: HarborInstance, { rewards, log }: Verified): Verdict {
  const reward = rewards[MAIN] ?? 0;
  const script = form === "harbor" ? "test.sh" : "run-tests.sh";
  return {
    reward,
    rule: form === "harbor" ? "harbor_reward" : "terminal_bench_tests",
    reason: `The task's ${script} gave ${reward}${named(rewards)}.`,
    details: { rewards, main: MAIN, log: log.slice(-MAX_LOG), ...noted(warnings) },
  };
}

export function verdictOfSteps(
  { steps, rewardOfSteps, warnings }: HarborInstance,
  verified: VerifiedStep[],
): Verdict {
  const all = verified.map(({ rewards }) => rewards);
  const rewards = rewardOfSteps === "final" ? (all.at(-1) ?? {}) : meanRewards(all);
  const reward = rewards[MAIN] ?? 0;
  const last = verified.at(-1);
  const missed = last && missedThreshold(last.rewards, steps[verified.length - 1]?.minReward);
  const ended = missed && verified.length < steps.length ? ` It ended there: ${missed}.` : "";
  return {
    reward,
    rule: `harbor_steps_${rewardOfSteps}`,
    reason: `${verified.length} of ${steps.length} steps were verified and gave ${reward}${named(rewards)}.${ended}`,
    details: { rewards, main: MAIN, steps: verified, ...noted(warnings) },
  };
}

function named(rewards: Rewards): string {
  const others = Object.entries(rewards).filter(([name]) => name !== MAIN);
  if (others.length === 0) return "";
  return ` (${others.map(([name, value]) => `${name} ${value}`).join(", ")})`;
}

function noted(warnings: string[]): { warnings?: string[] } {
  return warnings.length > 0 ? { warnings } : {};
}
