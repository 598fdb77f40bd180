import { ServiceError } from "../../errors.ts";
import type { ExecResult } from "../../sandbox/sandbox.ts";
import { LOG_FORMATS } from "../../verifiers/tests/formats.ts";
import { gradeTests, testLines } from "../../verifiers/tests/grade.ts";
import { r2eName } from "../../verifiers/tests/pytest-log.ts";
import { statusesOf } from "../../verifiers/tests/status.ts";
import type { Verdict } from "../../verifiers/verdict.ts";
import type { Probes, Twins } from "./probes.ts";
import type { Left } from "./protected.ts";
import type { SweInstance } from "./row.ts";
import type { Suspicion } from "./suspicious-text.ts";
import { tampering, withListedNames, withListedText } from "./tampering.ts";

/** A log beyond that is no test report; the largest published ones have some megabytes. */
export const MAX_LOG_BYTES = 16 << 20;

/** What a row's tests left behind. */
export type TestRun = Pick<ExecResult, "exitCode" | "timedOut" | "times"> & { log: string };

/** What a verdict rests on besides the run itself. */
export type Grounds = {
  probes: Probes | null;
  /** What of the change was not applied. */
  left: Left[];
  /** What its added lines have that no solution needs. */
  suspicions: Suspicion[];
};

/** What is made of a change that passes its tests and is suspicious: a reward of 0, no reward at all, or its reward. */
export type OfSuspicious = "zero" | "null" | "keep";

/**
 * The verdict on a test run.
 * @throws ServiceError `verdict_suspicious` where a suspicious change is to have no reward.
 */
export function judge(
  instance: SweInstance,
  run: TestRun,
  grounds: Grounds,
  ofSuspicious: OfSuspicious,
): Verdict {
  const { suspicions, left } = grounds;
  const verdict = decide(instance, run, grounds);
  const details = {
    evidence: evidenceOf(instance, grounds),
    ...(suspicions.length === 0 ? {} : { suspicions }),
  };
  if (verdict.reward === 0) {
    return {
      ...verdict,
      details: { ...details, log: withListedText(logEnd(run.log), grounds.probes) },
    };
  }
  if (suspicions.length === 0 || ofSuspicious === "keep") return { ...verdict, details };
  const reason = `The tests pass, but the change has what no solution needs: ${suspicionText(suspicions)}.${noteOf(left)}`;
  if (ofSuspicious === "zero") return { ...zero("suspicious", reason), details };
  throw new ServiceError("verdict_suspicious", reason, {
    mend: "look at the change; --swe-suspicious keep or zero gives it a reward",
  });
}

function decide(
  { tests, grading }: SweInstance,
  { log, exitCode, timedOut, times }: TestRun,
  { probes, left }: Grounds,
): Verdict {
  const note = noteOf(left);
  if (timedOut) {
    const used = usedText(times);
    return zero(
      "tests_timed_out",
      `The tests did not end within ${tests.timeoutMs} ms${used}.${note}`,
    );
  }
  // Then its middle is missing.
  if (Buffer.byteLength(log) >= MAX_LOG_BYTES) {
    return zero("log_too_large", `The tests printed more than ${MAX_LOG_BYTES} bytes.${note}`);
  }
  if ("expected" in grading) return matches(log, grading.expected, note);
  // The script's own exit code is that of its last line, and our probes make the runner's 1.
  const trusted = "script" in tests || probes ? null : exitCode;
  const lines = withListedNames(testLines(log, tests.format), probes);
  const { resolved, rule, reason } = gradeTests(log, trusted, tests.format, grading.lists, lines);
  if (!resolved) return zero(rule, `${reason}${note}`);
  const tampered = tampering(lines, probes);
  if (tampered !== null) {
    const cause = "the runner broke off, or was tampered with";
    return zero("probes_failed", `The tests pass, but ${tampered}: ${cause}.${note}`);
  }
  if (probes && tellsByExit(tests) && exitCode === 0) {
    const said = "The log names failures, as it has to, but the test command ended with 0";
    return zero("report_contradicts_exit", `${said}: the runner was tampered with.${note}`);
  }
  return { reward: 1, rule, reason: `${reason}${note}` };
}

/** Whether a command's exit code is the runner's own. */
function tellsByExit(tests: SweInstance["tests"]): boolean {
  return "command" in tests && !/[;|&\n]/.test(tests.command);
}

/** How strong a verdict is: which of our observations were made. */
function evidenceOf({ tests, grading }: SweInstance, { probes }: Grounds) {
  const twins = probes?.twins ?? [];
  const copies = twins.reduce((sum, one) => sum + one.copies.length, 0);
  return {
    copies,
    kinds: [...new Set(twins.flatMap(({ kinds }) => kinds))].toSorted(),
    /** With which probability a runner that guesses gets through. */
    luck: twins.reduce((chance, one) => chance / telling(one), 1),
    own_tests: probes?.expected.size ?? 0,
    exit_code: "lists" in grading && (tellsByExit(tests) || !("script" in tests)),
    reading: true,
  };
}

/** Among how many a runner has to guess. That a claim of a test holds is no guess: most do. */
function telling({ copies, kinds }: Twins): number {
  return kinds.every((kind) => kind === "claim") ? 1 : copies.length + 1;
}

function suspicionText(suspicions: readonly Suspicion[]): string {
  const shown = suspicions
    .slice(0, 3)
    .map(({ path, line, kind, token }) => `${token || kind} (${kind}, ${path}:${line})`);
  const more = suspicions.length > 3 ? `, and ${suspicions.length - 3} more` : "";
  return `${shown.join(", ")}${more}`;
}

function noteOf(left: readonly Left[]): string {
  return left.length === 0 ? "" : ` Left out of the change: ${leftText(left)}.`;
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

/** That it was not the node that took the time. */
function usedText(times: TestRun["times"]): string {
  if (!times) return "";
  const [wall, cpu, waited] = [times.wallMs, times.cpuMs, times.waitedMs].map(Math.round);
  return ` of their own: of ${wall} ms they had ${cpu} ms of the processor, and the node kept them waiting for ${waited} ms`;
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
