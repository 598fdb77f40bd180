import { exactJson, parseExactJson } from "../../lib/exact-json.ts";
import type { ExecResult, Sandbox } from "../../sandbox/sandbox.ts";
import { sameOutput, sameValue } from "../../verifiers/program-output.ts";
import type { CodeTest } from "./tests.ts";

/** How one test went. */
export type TestResult = "passed" | "wrong" | "error" | "time" | "output";

export type ProcessLimits = {
  /** CPU time of one test. Waiting for the node costs nothing of it, up to `PATIENCE` times as long. */
  testTimeoutMs: number;
  /** Units: milliseconds. Beyond it the test is ended whatever it has used. */
  leftMs: number;
  memoryBytes: number;
  /** By which printed numbers that are not whole may differ. */
  tolerance: number;
};

export const FOLDER = "/tmp/tests";
export const SOLUTION = `${FOLDER}/solution.py`;
export const DRIVER = `${FOLDER}/driver.py`;

const PATIENCE = 3;
const MIN_OUTPUT_BYTES = 1024 * 1024;
const SIGXCPU = 24;
const SIGKILL = 9;

/** Runs one test in a process of its own. Only its input goes in; what comes out is compared here. */
export async function runTest(
  sandbox: Sandbox,
  test: CodeTest,
  limits: ProcessLimits,
  signal: AbortSignal,
): Promise<{ result: TestResult; stderr: string }> {
  const stdin = test.kind === "stdin" ? test.input : exactJson(test.args);
  const mode = test.kind === "stdin" ? ["stdin", SOLUTION] : ["call", SOLUTION, test.name];
  const run = await sandbox.exec(limited(limits, mode), {
    cwd: FOLDER,
    stdin: stdin.endsWith("\n") ? stdin : `${stdin}\n`,
    timeoutMs: Math.max(1, Math.min(PATIENCE * limits.testTimeoutMs, limits.leftMs)),
    maxOutputBytes: Math.max(MIN_OUTPUT_BYTES, 2 * Buffer.byteLength(expectedText(test))),
    signal,
  });
  return { result: resultOf(test, run, limits), stderr: run.stderr };
}

function expectedText(test: CodeTest): string {
  return test.kind === "stdin" ? test.expected : (exactJson(test.expected) ?? "");
}

/** `ulimit` counts CPU time in seconds and memory in KiB; a solution can lower its limits only. */
function limited({ testTimeoutMs, memoryBytes }: ProcessLimits, mode: string[]): string[] {
  const seconds = Math.ceil(testTimeoutMs / 1000);
  const kibibytes = Math.floor(memoryBytes / 1024);
  const set = `ulimit -t ${seconds} -v ${kibibytes}; ulimit -s hard`;
  return ["bash", "-c", `${set}; exec python3 -B -X utf8 "$@"`, "test", DRIVER, ...mode];
}

function resultOf(test: CodeTest, run: ExecResult, { tolerance }: ProcessLimits): TestResult {
  if (run.timedOut || run.signal === SIGXCPU || run.signal === SIGKILL) return "time";
  if (run.exitCode !== 0) return "error";
  if (test.kind === "stdin")
    return sameOutput(run.stdout, test.expected, tolerance) ? "passed" : "wrong";
  try {
    return sameValue(parseExactJson(run.stdout), test.expected) ? "passed" : "wrong";
  } catch {
    return "output";
  }
}
