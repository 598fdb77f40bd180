import { ServiceError } from "../../errors.ts";
import type { ExecResult, Sandbox } from "../../sandbox/sandbox.ts";
import { sameOutput, sameValue } from "../../verifiers/program-output.ts";
import driver from "./driver.py" with { type: "text" };
import type { CodeTest } from "./tests.ts";

/** How one test went. */
export type TestResult = "passed" | "wrong" | "error" | "time" | "output";

export type TestLimits = {
  /** CPU time of one test. Waiting for the node costs nothing of it, up to `PATIENCE` times as long. */
  testTimeoutMs: number;
  totalMs: number;
  memoryBytes: number;
  /** The first test that fails is the last one. */
  stopAtFailure: boolean;
  /** By which printed numbers that are not whole may differ. */
  tolerance: number;
};

const PATIENCE = 3;
const FOLDER = "/tmp/tests";
const SOLUTION = `${FOLDER}/solution.py`;
const DRIVER = `${FOLDER}/driver.py`;
const MIN_OUTPUT_BYTES = 1024 * 1024;
const MAX_STDERR_SHOWN = 500;
const CHECK_TIMEOUT_MS = 60_000;
const SIGXCPU = 24;
const SIGKILL = 9;

/**
 * Runs a solution against hidden tests in a sandbox that nobody else has used. Only inputs go in; what comes out is
 * compared here. Tests beyond the total time are told as `time`.
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
  const results: TestResult[] = [];
  let stderr = "";
  for (const test of tests) {
    const leftMs = untilMs - performance.now();
    if (leftMs <= 0) results.push("time");
    else {
      const run = await runOne(sandbox, test, { ...limits, totalMs: leftMs }, signal);
      const result = resultOf(test, run, limits);
      // Whether it is the solution's fault that a process failed is clear only where others work.
      if (result === "error" && !results.includes("error")) await checkPython(sandbox, signal);
      if (result !== "passed" && stderr === "") stderr = run.stderr.slice(-MAX_STDERR_SHOWN);
      results.push(result);
    }
    if (limits.stopAtFailure && results.at(-1) !== "passed") break;
  }
  return { results, stderr };
}

function runOne(sandbox: Sandbox, test: CodeTest, limits: TestLimits, signal: AbortSignal) {
  const stdin = test.kind === "stdin" ? test.input : JSON.stringify(test.args);
  const mode = test.kind === "stdin" ? ["stdin", SOLUTION] : ["call", SOLUTION, test.name];
  return sandbox.exec(limited(limits, mode), {
    cwd: FOLDER,
    stdin: stdin.endsWith("\n") ? stdin : `${stdin}\n`,
    timeoutMs: Math.max(1, Math.min(PATIENCE * limits.testTimeoutMs, limits.totalMs)),
    maxOutputBytes: Math.max(MIN_OUTPUT_BYTES, 2 * expectedText(test).length),
    signal,
  });
}

function expectedText(test: CodeTest): string {
  return test.kind === "stdin" ? test.expected : (JSON.stringify(test.expected) ?? "");
}

/** `ulimit` counts CPU time in seconds and memory in KiB; a solution can lower its limits only. */
function limited({ testTimeoutMs, memoryBytes }: TestLimits, mode: string[]): string[] {
  const seconds = Math.ceil(testTimeoutMs / 1000);
  const kibibytes = Math.floor(memoryBytes / 1024);
  const set = `ulimit -t ${seconds} -v ${kibibytes}; ulimit -s hard`;
  return ["bash", "-c", `${set}; exec python3 -B -X utf8 "$@"`, "test", DRIVER, ...mode];
}

function resultOf(test: CodeTest, run: ExecResult, { tolerance }: TestLimits): TestResult {
  if (run.timedOut || run.signal === SIGXCPU || run.signal === SIGKILL) return "time";
  if (run.exitCode !== 0) return "error";
  if (test.kind === "stdin")
    return sameOutput(run.stdout, test.expected, tolerance) ? "passed" : "wrong";
  try {
    return sameValue(JSON.parse(run.stdout), test.expected) ? "passed" : "wrong";
  } catch {
    return "output";
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
