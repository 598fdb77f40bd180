import { exactJson } from "../../lib/exact-json.ts";
import type { AloneResult, Sandbox } from "../../sandbox/sandbox.ts";
import type { WorkTimes } from "../../sandbox/work-meter.ts";
import { sameOutput } from "../../verifiers/program-output.ts";
import { readPythonJson, sameValue } from "../../verifiers/program-value.ts";
import driver from "./driver.py" with { type: "text" };
import type { CodeTest } from "./tests.ts";

/** How one test went. */
export type TestResult = "passed" | "wrong" | "error" | "time" | "output";

export type ProcessLimits = {
  /** CPU time of one test, over all of its processes. */
  testTimeoutMs: number;
  /** Of wall time. Beyond it the node is too busy for a verdict. */
  wallMs: number;
  memoryBytes: number;
  /** By which printed numbers may differ, where the one that is expected is not whole. */
  tolerance: number;
};

/**
 * What came of one run. `not_begun`: nothing of the solution ran, so that the sandbox or the image is at fault.
 * `killed`: by nobody that is known here.
 */
export type TestRun = {
  result: TestResult | "not_begun" | "killed";
  stderr: string;
  times: WorkTimes;
  clean: boolean;
};

/** The same work costs more of a busy processor, whose caches and threads others use too: a limit allows for that. */
const CPU_SLACK = 1.25;
/** A program that sleeps for as long as it may compute, beside computing, is one that hangs. */
const WORK_SLACK = CPU_SLACK + 1;

const MIN_OUTPUT_BYTES = 1024 * 1024;
const SIGXCPU = 24;
const SIGKILL = 9;

/** What the sandbox has of a solution, where nothing that runs in it can change it. */
export type Program = { driver: string; solution: string };

export function giveProgram(sandbox: Sandbox, solution: string): Program {
  return {
    driver: sandbox.give("driver.py", driver),
    solution: sandbox.give("solution.py", solution),
  };
}

/**
 * Runs one test in a process of its own. Only its input goes in; what comes out is compared here.
 * @throws ServiceError as `runAlone`
 */
export async function runTest(
  sandbox: Sandbox,
  program: Program,
  test: CodeTest,
  { testTimeoutMs, wallMs, memoryBytes, tolerance }: ProcessLimits,
  signal: AbortSignal,
): Promise<TestRun> {
  const stdin = test.kind === "stdin" ? test.input : exactJson(test.args);
  const mode = test.kind === "stdin" ? ["stdin"] : ["call", test.name];
  // The driver prints it before it runs anything of the solution's, which can't take it back.
  const began = crypto.randomUUID();
  const argv = ["python3", "-B", "-X", "utf8", program.driver, began, program.solution, ...mode];
  const run = await sandbox.runAlone(argv, {
    stdin: stdin.endsWith("\n") ? stdin : `${stdin}\n`,
    cpuMs: CPU_SLACK * testTimeoutMs,
    workMs: WORK_SLACK * testTimeoutMs,
    wallMs,
    addressBytes: memoryBytes,
    maxOutputBytes: Math.max(MIN_OUTPUT_BYTES, 2 * Buffer.byteLength(expectedText(test))),
    signal,
  });
  const [before, after] = run.stderr.split(`${began}\n`, 2);
  const result = after === undefined ? "not_begun" : resultOf(test, run, tolerance);
  const { times, clean } = run;
  return { result, stderr: after ?? before ?? "", times, clean };
}

function expectedText(test: CodeTest): string {
  return test.kind === "stdin" ? test.expected : (exactJson(test.expected) ?? "");
}

function resultOf(test: CodeTest, run: AloneResult, tolerance: number): TestRun["result"] {
  if (run.end !== "itself" || run.signal === SIGXCPU) return "time";
  if (run.signal === SIGKILL) return "killed";
  if (run.exitCode !== 0) return "error";
  if (test.kind === "stdin")
    return sameOutput(run.stdout, test.expected, tolerance) ? "passed" : "wrong";
  try {
    return sameValue(readPythonJson(run.stdout), test.expected) ? "passed" : "wrong";
  } catch {
    return "output";
  }
}
