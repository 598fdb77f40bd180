import { LOG_FORMATS, type LogFormat, type LogFormatName } from "./formats.ts";
import { oneLine } from "./mocha-log.ts";
import { statusesOf, type TestLine, type TestStatus, type TestStatuses } from "./status.ts";

/** The tests of a row: those that the right change makes pass, and those that it must not break. */
export type TestLists = { failToPass: readonly string[]; passToPass: readonly string[] };

export type Grade = {
  resolved: boolean;
  rule: TestRule;
  reason: string;
  failToPass: Share;
  passToPass: Share;
};

/** How many of a list's tests count as passed. */
export type Share = { passed: number; of: number };

/**
 * `tests_passed`: every named test. `tests_failed`: some did not pass, or are not in the log. `no_test_report`:
 * the log names no test. `report_contradicts_exit`: it names no failure, and yet the command failed.
 */
export type TestRule =
  | "tests_passed"
  | "tests_failed"
  | "no_test_report"
  | "report_contradicts_exit";

/**
 * Signs that a suite ran whose format names failures only. All of them count at least one test. A number is looked at
 * from its beginning only, or a long one would take time with its square.
 */
const SUITE_RAN =
  /Executed [1-9]\d* of \d+|TOTAL: [1-9]\d* (?:SUCCESS|FAILED)|(?<!\d)[1-9]\d* passing|Tests:\s+[1-9]\d*|^# tests [1-9]\d*|(?<!\d)[1-9]\d* specs?, \d+ failures?|': ok$/m;

const SHOWN_TESTS = 3;

/** What a log says, line by line, of the tests in it. */
export function testLines(log: string, format: LogFormatName): TestLine[] {
  return LOG_FORMATS[format].parse(log);
}

/**
 * Grades a test command's whole log by the benchmarks' rules: each test of both lists has to pass. A skipped test
 * or an expected failure is no regression. Neither is a resolution, other than in the benchmarks' harness for the
 * latter: code under test can make a test that runs it an expected failure.
 *
 * @param exitCode of the command; null where it is not known
 * @param lines of the log, where names in it are others than those of the lists
 */
export function gradeTests(
  log: string,
  exitCode: number | null,
  format: LogFormatName,
  lists: TestLists,
  lines: readonly TestLine[] = testLines(log, format),
): Grade {
  const { failuresOnly = false }: LogFormat = LOG_FORMATS[format];
  const statuses = statusesOf(lines);
  const passes = (name: string, mustRun: boolean) => {
    const status = statusOf(name, statuses);
    if (failuresOnly) return status !== "failed" && statuses.get(oneLine(name)) !== "failed";
    return status === "passed" || (!mustRun && (status === "xfail" || status === "skipped"));
  };
  const missed = [
    ...lists.failToPass.filter((name) => !passes(name, true)),
    ...lists.passToPass.filter((name) => !passes(name, false)),
  ];
  const share = (names: readonly string[], mustRun: boolean): Share => ({
    passed: names.filter((name) => passes(name, mustRun)).length,
    of: names.length,
  });
  const shares = {
    failToPass: share(lists.failToPass, true),
    passToPass: share(lists.passToPass, false),
  };
  const zero = (rule: TestRule, reason: string): Grade => ({
    resolved: false,
    rule,
    reason,
    ...shares,
  });
  if (statuses.size === 0 && !(failuresOnly && SUITE_RAN.test(log))) {
    return zero("no_test_report", "The test command's log names no test.");
  }
  if (missed.length > 0) {
    const shown = missed.slice(0, SHOWN_TESTS).map((name) => explain(name, statuses));
    const more = missed.length > SHOWN_TESTS ? `, and ${missed.length - SHOWN_TESTS} more` : "";
    return zero("tests_failed", `Tests that have to pass did not: ${shown.join(", ")}${more}.`);
  }
  const failed = [...statuses.values()].some((status) => status === "failed" || status === "error");
  if (exitCode !== null && exitCode !== 0 && !failed) {
    const reason = `The log names no failure, but the test command ended with ${exitCode}.`;
    return zero("report_contradicts_exit", reason);
  }
  const count = lists.failToPass.length + lists.passToPass.length;
  const reason = `All ${count} tests that have to pass did.`;
  return { resolved: true, rule: "tests_passed", reason, ...shares };
}

/**
 * Some published lists cut the parameters off (`test_x[a`): such a name stands for the tests that begin with it,
 * as long as they agree.
 */
function statusOf(name: string, statuses: TestStatuses): TestStatus | undefined {
  const exact = statuses.get(name) ?? statuses.get(escaped(name));
  if (exact !== undefined || count(name, "[") <= count(name, "]")) return exact;
  const found = [...statuses].filter(([full]) => full.startsWith(name)).map(([, status]) => status);
  const agree =
    new Set(found.map((status) => status === "passed" || status === "xfail")).size === 1;
  return agree ? found[0] : undefined;
}

/** As pytest prints parameters that are not ASCII; some published lists have them decoded. */
function escaped(name: string): string {
  return name.replace(/[^\x20-\x7e]/g, (char) => {
    const code = char.charCodeAt(0).toString(16);
    return code.length > 2 ? `\\u${code.padStart(4, "0")}` : `\\x${code.padStart(2, "0")}`;
  });
}

function count(text: string, part: string): number {
  return text.split(part).length - 1;
}

function explain(name: string, statuses: TestStatuses): string {
  const shown = name.length > 120 ? `${name.slice(0, 120)}…` : name;
  return `${shown} (${statusOf(name, statuses) ?? "not reported"})`;
}
