import type { RolloutView } from "../protocol/view.ts";

/** What a watcher has seen finish. */
export class ServiceTally {
  finished = 0;
  readonly states: Record<string, number> = { succeeded: 0, failed: 0, cancelled: 0 };
  /** By error code: rollouts that failed, and attempts that another one followed. */
  readonly failures = new Map<string, number>();
  readonly retried = new Map<string, number>();
  #rewardSum = 0;

  add({ state, reward, error, failures }: RolloutView): void {
    this.finished++;
    this.states[state] = (this.states[state] ?? 0) + 1;
    if (reward !== null) this.#rewardSum += reward;
    if (state === "failed" && error) count(this.failures, error.code);
    for (const failure of failures) count(this.retried, failure.error.code);
  }

  /** Over those that have a reward; null where none has. */
  get meanReward(): number | null {
    const rewarded = this.states.succeeded ?? 0;
    return rewarded === 0 ? null : this.#rewardSum / rewarded;
  }
}

function count(counts: Map<string, number>, code: string): void {
  counts.set(code, (counts.get(code) ?? 0) + 1);
}
