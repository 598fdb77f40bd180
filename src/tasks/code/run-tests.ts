import { ServiceError } from "../../errors.ts";
import { Permits } from "../../lib/permits.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { WorkTimes } from "../../sandbox/work-meter.ts";
import type { EvalContext } from "../task-kind.ts";
import { workLimit } from "../work-limit.ts";
import {
  giveProgram,
  type ProcessLimits,
  runTest,
  type TestResult,
  type TestRun,
} from "./test-process.ts";
import type { CodeTest } from "./tests.ts";

export type TestLimits = Omit<ProcessLimits, "wallMs"> & {
  /** Of all tests together, what the node kept them waiting left out. */
  totalMs: number;
  /** How many tests run at once, of all rollouts. */
  atOncePerThread: number;
  /** The first test that fails is the last one. */
  stopAtFailure: boolean;
};

type Place = Pick<EvalContext, "renew" | "limitMs" | "untilMs" | "signal"> & { sandbox: Sandbox };

export type TestResults = {
  results: TestResult[];
  /** The end of what the first failing one said. */
  stderr: string;
  /** Sums over the tests. */
  times: WorkTimes;
};

const MAX_STDERR_SHOWN = 500;

/** Of a short test nobody sees how long the node kept it waiting. */
const UNSEEN_MS = 500;

const NO_TIMES: WorkTimes = { wallMs: 0, cpuMs: 0, waitedMs: 0 };

/** Programs on this thread's share of the node's processors. */
let programs: Permits | null = null;

/**
 * Runs a solution against hidden tests, one after another, each with all the memory and all the time, in a sandbox in
 * which no test before it has left anything. An answer is final: nothing that has answered runs again. Tests beyond the
 * total time are told as `time`.
 *
 * @returns one result for each test that was looked at
 * @throws ServiceError `verifier_failed` where the image can't run Python, `node_exhausted`, `sandbox_*`, the abort reason
 */
export async function runTests(
  place: Place,
  solution: string,
  tests: readonly CodeTest[],
  limits: TestLimits,
): Promise<TestResults> {
  const bench = new TestBench(place, solution, limits);
  const results: TestResult[] = [];
  let stderr = "";
  for (const test of tests) {
    const run = bench.worked() ? null : await bench.run(test);
    if (stderr === "" && run && run.result !== "passed") {
      stderr = run.stderr.slice(-MAX_STDERR_SHOWN);
    }
    results.push(run?.result ?? "time");
    if (limits.stopAtFailure && results.at(-1) !== "passed") break;
  }
  return { results, stderr, times: bench.times };
}

class TestBench {
  readonly times: WorkTimes = { wallMs: 0, cpuMs: 0, waitedMs: 0 };
  readonly #place: Place;
  readonly #solution: string;
  readonly #limits: TestLimits;
  readonly #totalMs: number;
  #workMs = 0;
  /** Whether the solution has run in the present sandbox. */
  #used = false;
  #clean = true;

  constructor(place: Place, solution: string, limits: TestLimits) {
    this.#place = place;
    this.#solution = solution;
    this.#limits = limits;
    this.#totalMs = workLimit(limits.totalMs, place).timeoutMs;
  }

  /** Whether the tests have had their time together. */
  worked(): boolean {
    return this.#workMs >= this.#totalMs;
  }

  /** Runs a test to its result. One whose process did not answer for reasons that may not be its own runs once more. */
  async run(test: CodeTest): Promise<Pick<TestRun, "stderr"> & { result: TestResult }> {
    for (let last = false; ; last = true) {
      const run = await this.#runOnce(test).catch((error) => this.#outOfTime(error));
      this.#add(run.times);
      const { result, stderr } = run;
      if (result === "not_begun") {
        // Whatever the solution did to the sandbox before is undone in another one.
        if (!last && this.#used) await this.#renew();
        else throw cantRun(stderr);
      } else if (result !== "killed") return { result, stderr };
      else if (last) return { result: "error", stderr };
      else await this.#renew();
    }
  }

  async #runOnce(test: CodeTest): Promise<TestRun> {
    const { signal, untilMs } = this.#place;
    if (!this.#clean) await this.#renew();
    programs ??= new Permits(this.#limits.atOncePerThread);
    using _core = await programs.take(signal);
    const { sandbox } = this.#place;
    const program = giveProgram(sandbox, this.#solution);
    const limits = { ...this.#limits, wallMs: untilMs - performance.now() };
    try {
      const run = await runTest(sandbox, program, test, limits, signal);
      this.#used ||= run.result !== "not_begun";
      this.#clean = run.clean;
      return run;
    } catch (error) {
      const broken = error instanceof ServiceError && error.code === "image_invalid";
      if (!broken || !this.#used) throw error;
      return { result: "not_begun", stderr: error.message, times: NO_TIMES, clean: false };
    }
  }

  /** At the end of EVAL's time: tests that slept through theirs have not been kept waiting by the node. */
  #outOfTime(error: unknown): TestRun {
    const { wallMs, waitedMs } = this.times;
    const isBusy = error instanceof ServiceError && error.code === "node_exhausted";
    if (!isBusy || wallMs - waitedMs < this.#totalMs) throw error;
    return { result: "time", stderr: "", times: NO_TIMES, clean: true };
  }

  #add({ wallMs, cpuMs, waitedMs }: WorkTimes): void {
    this.times.wallMs += wallMs;
    this.times.cpuMs += cpuMs;
    this.times.waitedMs += waitedMs;
    this.#workMs += cpuMs + Math.max(0, wallMs - waitedMs - cpuMs - UNSEEN_MS);
  }

  async #renew(): Promise<void> {
    this.#place.sandbox = await this.#place.renew();
    this.#used = false;
    this.#clean = true;
  }
}

function cantRun(stderr: string): ServiceError {
  const why = stderr.slice(-MAX_STDERR_SHOWN) || "Python did not begin";
  return new ServiceError("verifier_failed", `tests can't run in this image: ${why}`);
}
