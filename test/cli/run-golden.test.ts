import { expect, test } from "bun:test";
import { formatGolden } from "../../src/cli/run-golden.ts";
import { failedView, viewOf } from "./views.ts";

function ended(row: number, sample: number, reward: number, log?: string) {
  const details = log === undefined ? {} : { details: { log } };
  const verdict = { reward, rule: "tests_failed", reason: "One\nfailed.", ...details };
  const instance = { data_source: "swe", instance_id: `a__b-${row}` };
  return { ...viewOf(`g-${row}-${sample}`, { reward, verdict }), row, sample, instance };
}

test("a row whose solution fails, or that no work passes, is named with verdict and the log's end", () => {
  const log = `${"early\n".repeat(50)}\x1b[31mE  assert 1 == 2\x1b[0m\n\x1b[2J1 failed\n`;
  const text = formatGolden([ended(0, 0, 1), ended(0, 1, 0), ended(1, 0, 0, log), ended(2, 1, 1)]);
  const lines = text.split("\n");
  expect(lines.slice(0, 4)).toEqual([
    "",
    "Not as they should be:",
    "  row 1 a__b-1: its own solution earned 0, not 1 (g-1-0)",
    "      tests_failed: One failed.",
  ]);
  expect(lines.slice(-6)).toEqual([
    "      | early",
    "      | E  assert 1 == 2",
    "      | 1 failed",
    "  row 2 a__b-2: no work at all earned 1, not 0 (g-2-1)",
    "      tests_failed: One failed.",
    "",
  ]);
  expect(lines.filter((line) => line.startsWith("      | "))).toHaveLength(15);
  expect(text).not.toContain("\x1b");
});

test("rows without a verdict are told by their failures, and of many only some are told", () => {
  const failed = { ...failedView("x"), row: 0, sample: 0, instance: { data_source: "swe" } };
  expect(formatGolden([failed, ended(0, 0, 1)])).toBe("");
  const many = Array.from({ length: 30 }, (_, row) => ended(row, 0, 0));
  expect(formatGolden(many).trimEnd().split("\n").at(-1)).toBe("  and 10 more");
});
