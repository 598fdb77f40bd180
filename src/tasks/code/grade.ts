import type { Verdict } from "../../verifiers/verdict.ts";
import { needSandbox } from "../need-sandbox.ts";
import type { EvalContext } from "../task-kind.ts";
import { usedOf } from "../work-limit.ts";
import type { CodeInstance } from "./row.ts";
import { runTests } from "./run-tests.ts";
import type { TestResult } from "./test-process.ts";

/** Judges of programming contests accept as much, where answers are not whole numbers. */
const TOLERANCE_WHERE_SHARED = 1e-6;

const WHY: Record<Exclude<TestResult, "passed">, string> = {
  wrong: "gave another answer than expected",
  error: "failed",
  time: "took too long",
  output: "gave no readable answer",
};

/** @param solution null: the policy has left none */
export async function gradeCode(
  { tests, grading, testTimeoutMs }: CodeInstance,
  solution: string | null,
  context: EvalContext,
): Promise<Verdict> {
  if (solution === null || solution.trim() === "") {
    return { reward: 0, rule: "no_solution", reason: "There is no code to be tested." };
  }
  const limits = {
    testTimeoutMs,
    ...context.settings.tests,
    stopAtFailure: grading === "all",
    tolerance: grading === "share" ? TOLERANCE_WHERE_SHARED : 0,
  };
  const place = { ...context, sandbox: needSandbox(context.sandbox) };
  const { results, stderr, times } = await runTests(place, solution, tests, limits);
  const passed = results.filter((result) => result === "passed").length;
  const failed = results.findIndex((result) => result !== "passed");
  const total = tests.length;
  const used = usedOf(times);
  if (failed < 0) {
    const reason = `All ${total} tests passed.`;
    return { reward: 1, rule: "all_tests_passed", reason, details: { passed, total, ...used } };
  }
  const result = results[failed] as keyof typeof WHY;
  const first = `the solution ${WHY[result]} in test ${failed + 1}`;
  return {
    reward: grading === "share" ? passed / total : 0,
    rule: passed > 0 && grading === "share" ? "some_tests_passed" : `test_${result}`,
    reason: `${passed} of ${total} tests passed before the verdict; ${first}.`,
    details: { passed, total, first_failure: failed, why: result, stderr, ...used },
  };
}
