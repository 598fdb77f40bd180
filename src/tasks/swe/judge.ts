import { LOG_FORMATS } from "../../verifiers/tests/formats.ts";
import { gradeTests } from "../../verifiers/tests/grade.ts";
import { r2eName } from "../../verifiers/tests/pytest-log.ts";
import { statusesOf } from "../../verifiers/tests/status.ts";
import type { Verdict } from "../../verifiers/verdict.ts";
import { type Probes, probesHold } from "./probes.ts";
import type { Left } from "./protected.ts";
import type { SweInstance } from "./row.ts";

/** A log beyond that is no test report; the largest published ones have some megabytes. */
export const MAX_LOG_BYTES = 16 << 20;

/** What a row's tests left behind. */
export type TestRun = { log: string; exitCode: number | null; timedOut: boolean };

/** The verdict on a test run; `left` is what of the change was not applied. */
export function judge(
  instance: SweInstance,
  run: TestRun,
  probes: Probes | null,
  left: Left[],
): Verdict {
  const verdict = decide(instance, run, probes, left);
  if (verdict.reward === 1) return verdict;
  return { ...verdict, details: { ...verdict.details, log: logEnd(run.log) } };
}

function decide(
  { tests, grading }: SweInstance,
  { log, exitCode, timedOut }: TestRun,
  probes: Probes | null,
  left: Left[],
): Verdict {
  const note = left.length === 0 ? "" : ` Left out of the change: ${leftText(left)}.`;
  if (timedOut) {
    return zero("tests_timed_out", `The tests did not end within ${tests.timeoutMs} ms.${note}`);
  }
  // Then its middle is missing.
  if (Buffer.byteLength(log) >= MAX_LOG_BYTES) {
    return zero("log_too_large", `The tests printed more than ${MAX_LOG_BYTES} bytes.${note}`);
  }
  if ("expected" in grading) return matches(log, grading.expected, note);
  // The script's own exit code is that of its last line, and our probes make the runner's 1.
  const trusted = "script" in tests || probes ? null : exitCode;
  const { resolved, rule, reason } = gradeTests(log, trusted, tests.format, grading.lists);
  if (!resolved) return zero(rule, `${reason}${note}`);
  if (probes && !probesHold(log, tests.format, probes)) {
    const said =
      "The tests pass, but those of ours that ran along did not come out as they have to";
    const cause = "the runner broke off, or was tampered with";
    return zero("probes_failed", `${said}: ${cause}.${note}`);
  }
  return { reward: 1, rule, reason: `${reason}${note}` };
}

/** R2E-Gym's rule: every test of the run comes out as it did for the row's own commit, and no other is there. */
function matches(log: string, expected: Record<string, string>, note: string): Verdict {
  const statuses = statusesOf(LOG_FORMATS.r2e.parse(log));
  const wanted = new Map(
    Object.entries(expected).map(([name, status]) => [r2eName(name), status.toLowerCase()]),
  );
  wanted.delete("");
  if (statuses.size === 0) {
    return zero("no_test_report", `The test command's log names no test.${note}`);
  }
  const names = new Set([...wanted.keys(), ...statuses.keys()]);
  const wrong = [...names].filter((name) => wanted.get(name) !== statuses.get(name));
  if (wrong.length > 0) {
    const shown = wrong
      .slice(0, 3)
      .map((name) => `${name} (${statuses.get(name) ?? "not reported"})`);
    return zero("tests_failed", `Tests did not come out as expected: ${shown.join(", ")}.${note}`);
  }
  const reason = `All ${wanted.size} tests came out as expected.${note}`;
  return { reward: 1, rule: "tests_passed", reason };
}

export function leftText(left: readonly Left[]): string {
  const shown = left.slice(0, 5).map(({ path, why }) => `${path} (${why})`);
  return `${shown.join(", ")}${left.length > 5 ? `, and ${left.length - 5} more` : ""}`;
}

const MAX_LOG_END = 3000;

function logEnd(log: string): string {
  return Bun.stripANSI(log.slice(-MAX_LOG_END)).trim();
}

export function zero(rule: string, reason: string): Verdict {
  return { reward: 0, rule, reason };
}
