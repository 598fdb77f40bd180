/** A verifier's rewards by name. The main one is called `reward`. */
export type Rewards = Record<string, number>;

export const MAIN = "reward";

/** `reward.txt`: one number. Null: it holds none. */
export function rewardsOfText(text: string): Rewards | null {
  const number = Number(text.trim() || Number.NaN);
  return isReward(number) ? { [MAIN]: number } : null;
}

/** `reward.json`: numbers by name, one of which is `reward` or the only one. Null: it holds none such. */
export function rewardsOfJson(text: string): Rewards | null {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return null;
  }
  if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
  const rewards: Rewards = Object.create(null);
  for (const [name, given] of Object.entries(value)) {
    // Python's own reader takes True for 1.
    const number = typeof given === "boolean" ? Number(given) : given;
    if (!Number.isFinite(number)) return null;
    rewards[name] = number;
  }
  const names = Object.keys(rewards);
  if (!(MAIN in rewards) && names.length === 1) rewards[MAIN] = rewards[names[0] as string] ?? 0;
  return isReward(rewards[MAIN] ?? Number.NaN) ? rewards : null;
}

function isReward(number: number): boolean {
  return number >= 0 && number <= 1;
}

/** By name, over steps that were verified; a name that a step lacks counts as 0 there. */
export function meanRewards(steps: readonly Rewards[]): Rewards {
  const names = new Set(steps.flatMap((rewards) => Object.keys(rewards)));
  const mean = (name: string) =>
    steps.reduce((sum, rewards) => sum + (rewards[name] ?? 0), 0) / steps.length;
  return Object.fromEntries([...names].map((name) => [name, mean(name)]));
}

/** Which of a step's thresholds its rewards miss; null where they meet all. */
export function missedThreshold(
  rewards: Rewards,
  least: number | Record<string, number> | undefined,
): string | null {
  if (least === undefined) return null;
  const thresholds = typeof least === "number" ? { [MAIN]: least } : least;
  const missed = Object.entries(thresholds).find(
    ([name, threshold]) => !((rewards[name] ?? Number.NEGATIVE_INFINITY) >= threshold),
  );
  return missed ? `${missed[0]} is ${rewards[missed[0]] ?? "missing"}, below ${missed[1]}` : null;
}

const SUMMARY = /^=+ *short test summary info *=+$/im;
const LINE = /^(PASSED|FAILED|SKIPPED|XFAIL|XPASS|ERROR):? +(\S.*)$/;
const GOOD = ["PASSED", "SKIPPED", "XFAIL"];

/**
 * The results in pytest's summary (`-rA`), as Terminal-Bench 1 reads them; null where the log has none. A test with two
 * results has the worse one.
 */
export function pytestResults(log: string): Record<string, "passed" | "failed"> | null {
  const summary = SUMMARY.exec(log);
  if (!summary) return null;
  const results: Record<string, "passed" | "failed"> = Object.create(null);
  for (const line of log.slice(summary.index + summary[0].length).split("\n")) {
    const [, status = "", test = ""] = LINE.exec(line.trimEnd()) ?? [];
    if (status === "") continue;
    const name = test.replace(/^.*?::/, "").replace(/ - .*$/, "");
    const passed = GOOD.includes(status) && results[name] !== "failed";
    results[name] = passed ? "passed" : "failed";
  }
  return Object.keys(results).length === 0 ? null : results;
}
