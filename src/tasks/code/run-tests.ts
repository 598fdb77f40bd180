import { ServiceError } from "../../errors.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import driver from "./driver.py" with { type: "text" };
import { DRIVER, FOLDER, runTest, SOLUTION, type TestResult } from "./test-process.ts";
import type { CodeTest } from "./tests.ts";

export type TestLimits = {
  /** CPU time of one test. */
  testTimeoutMs: number;
  totalMs: number;
  /** Of one process; those that run at once share it. */
  memoryBytes: number;
  /** How many tests run at once. */
  atOnce: number;
  /** The first test that fails is the last one. */
  stopAtFailure: boolean;
  /** By which printed numbers that are not whole may differ. */
  tolerance: number;
};

const MAX_STDERR_SHOWN = 500;
const CHECK_TIMEOUT_MS = 60_000;

/**
 * Runs a solution against hidden tests in a sandbox that nobody else has used. Tests beyond the total time are told as
 * `time`. The verdict is that of tests which run one after another: one that fails beside others runs again alone,
 * with all the memory and all the time.
 *
 * @returns one result for each test that was looked at, and the end of what the first failing one said
 * @throws ServiceError `verifier_failed` where the sandbox can't run Python, `sandbox_*`, the abort reason.
 */
export async function runTests(
  sandbox: Sandbox,
  solution: string,
  tests: readonly CodeTest[],
  limits: TestLimits,
  signal: AbortSignal,
): Promise<{ results: TestResult[]; stderr: string }> {
  await sandbox.writeFile(DRIVER, driver, 0o644, signal);
  await sandbox.writeFile(SOLUTION, solution, 0o644, signal);
  const untilMs = performance.now() + limits.totalMs;
  const run = async (test: CodeTest, memoryBytes: number) => {
    const leftMs = untilMs - performance.now();
    if (leftMs <= 0) return { result: "time" as const, stderr: "" };
    return await runTest(sandbox, test, { ...limits, memoryBytes, leftMs }, signal);
  };
  const results: TestResult[] = [];
  let stderr = "";
  while (results.length < tests.length) {
    // Most wrong solutions fail the first test: that none runs beside it saves the work of the others.
    const ahead = results.length === 0 ? [] : await passedAtOnce(tests.slice(results.length), run);
    for (const passed of ahead.length === 0 ? [false] : ahead) {
      const test = tests[results.length] as CodeTest;
      const alone = passed ? null : await run(test, limits.memoryBytes);
      const result = alone?.result ?? "passed";
      // Whether it is the solution's fault that a process failed is clear only where others work.
      if (result === "error" && !results.includes("error")) await checkPython(sandbox, signal);
      if (stderr === "") stderr = (alone?.stderr ?? "").slice(-MAX_STDERR_SHOWN);
      results.push(result);
      if (limits.stopAtFailure && result !== "passed") return { results, stderr };
    }
  }
  return { results, stderr };

  /** Which of the next tests pass beside each other; after one that fails no more begin where it would be the last. */
  async function passedAtOnce(next: readonly CodeTest[], runOne: typeof run): Promise<boolean[]> {
    const width = Math.min(limits.atOnce, next.length);
    if (width <= 1) return [];
    const passed: boolean[] = [];
    let begun = 0;
    let over = false;
    const lane = async () => {
      while (!over && begun < next.length) {
        const index = begun++;
        const share = Math.floor(limits.memoryBytes / width);
        const { result } = await runOne(next[index] as CodeTest, share);
        passed[index] = result === "passed";
        over ||= limits.stopAtFailure && result !== "passed";
      }
    };
    await Promise.all(Array.from({ length: width }, lane));
    return passed;
  }
}

async function checkPython(sandbox: Sandbox, signal: AbortSignal): Promise<void> {
  const argv = ["python3", "-B", DRIVER, "check", SOLUTION];
  const limits = { timeoutMs: CHECK_TIMEOUT_MS, maxOutputBytes: 1000 };
  const { stdout, stderr } = await sandbox.exec(argv, { cwd: FOLDER, ...limits, signal });
  if (stdout === "ready\n") return;
  throw new ServiceError(
    "verifier_failed",
    `tests can't run: ${stderr || "Python gave no answer"}`,
  );
}
