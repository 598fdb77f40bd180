import { describe, expect, test } from "bun:test";
import { rewardBounds } from "../../src/jobs/reward-bounds.ts";
import { parseRule } from "../../src/jobs/reward-rule.ts";
import { randomFrom } from "../support/random.ts";

function verdict(rule: string, known: number[], open = 0, droppable = false): boolean | null {
  return parseRule(rule)(rewardBounds(known, open, droppable));
}

describe("on rewards that are all known", () => {
  test("compares figures, with the usual precedence", () => {
    const rewards = [0, 0, 1, 1];
    const truths = {
      "spread > 0": true,
      "mean == 0.5 && n == 4": true,
      "std >= 0.5": true,
      "max - min > 1": false,
      "2 + 3 * 4 == 14 && (2 + 3) * 4 == 20": true,
      "!(mean > 0.9) || mean / 0 > 1": true,
      "above(0.5) == 0.5 && sum != 3": true,
      "-mean < 0 && 1e-1 < .2": true,
      "mean < 0.1 || mean > 0.9 && spread > 0": false,
    };
    for (const [rule, expected] of Object.entries(truths)) {
      expect([rule, verdict(rule, rewards)]).toEqual([rule, expected]);
    }
  });

  test("a division by nothing decides nothing, and all of no reward is 0", () => {
    expect(verdict("1 / spread > 0", [1, 1])).toBeNull();
    expect(verdict("mean == 0 && std == 0 && spread == 0 && n == 0", [])).toBe(true);
  });
});

test("what can't be read is refused with the place, and nothing is run as code", () => {
  const wrong = {
    spread: "it is a number",
    "mean + (spread > 0) > 1": "a condition stands where a number is needed",
    "mean && spread > 0": "a number stands where a condition is needed",
    "process.exit(1)": "can't be read",
    "constructor > 0": '"constructor" is not expected',
    "above(mean) > 0": "above takes a number",
    "above > 0": "above needs its limit",
    "(mean > 0": 'a ")" is missing',
    "mean >": "it ends too early",
    "mean > 0 0": '"0" is not expected',
    "": "it ends too early",
    [`${"(".repeat(600)}`]: "longer than 500",
  };
  for (const [rule, why] of Object.entries(wrong)) expect(() => parseRule(rule)).toThrow(why);
});

describe("on rewards that are still to come", () => {
  test("says what is certain", () => {
    expect(verdict("spread > 0", [0, 1], 6)).toBe(true);
    expect(verdict("spread > 0", [0, 0], 1)).toBeNull();
    expect(verdict("std > 0.4", [0, 0, 0, 0, 0, 0, 0], 1)).toBe(false);
    expect(verdict("mean > 0.1 && mean < 0.9", [1, 1, 1, 1, 1, 1, 1, 1], 1)).toBeNull();
    expect(verdict("mean <= 0.5", [1, 1, 1, 1, 1], 3)).toBe(false);
    // One of the rewards may never come, and then the mean is lower.
    expect(verdict("mean >= 0.5", [1, 0], 1)).toBeNull();
    expect(verdict("n >= 4", [1, 1], 2)).toBe(true);
    expect(verdict("n >= 4", [1, 1], 2, true)).toBeNull();
  });

  test("is never wrong: whatever comes, a certain verdict holds", () => {
    const random = randomFrom(3);
    const rules = [
      "spread > 0.3",
      "std > 0.25",
      "mean > 0.2 && mean < 0.8",
      "above(0.5) >= 0.5 || min > 0.1",
      "max - mean > 0.3",
      "sum * 2 - n / 3 > 1",
      "!(std / (mean + 0.1) < 0.5)",
    ];
    let certain = 0;
    for (let trial = 0; trial < 4000; trial++) {
      const steps = [0, 0.5, 1];
      const reward = () => (random() < 0.7 ? (steps[Math.floor(random() * 3)] ?? 0) : random());
      const known = Array.from({ length: Math.floor(random() * 7) }, reward);
      const open = Math.floor(random() * 4);
      const droppable = random() < 0.5;
      const rule = rules[trial % rules.length] as string;
      const early = verdict(rule, known, open, droppable);
      if (early === null) continue;
      certain++;
      const come = droppable ? Math.floor(random() * (open + 1)) : open;
      const all = [...known, ...Array.from({ length: come }, reward)];
      expect([rule, known, all, verdict(rule, all)]).toEqual([rule, known, all, early]);
    }
    expect(certain).toBeGreaterThan(1000);
  });
});

test("a rule on a large group of which any may be left out is worked out in little time", () => {
  const before = process.cpuUsage();
  expect(verdict("std > 0.4 && spread > 0", [0, 1, 0.5], 1021, true)).toBeNull();
  const { user, system } = process.cpuUsage(before);
  expect((user + system) / 1e6).toBeLessThan(1.5);
});
