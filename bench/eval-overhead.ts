import { attachSandbox } from "../src/sandbox/attach.ts";
import { endSandbox } from "../src/sandbox/end.ts";
import { swe } from "../src/tasks/swe/swe.ts";
import { setup } from "../test/sandbox/setup.ts";
import { evalContext } from "../test/support/task-context.ts";
import { SOLUTION, tallyImage } from "../test/tasks/swe/tally.ts";
import { percentile, print, round } from "./line.ts";

const EVALUATIONS = 12;
const TARGET_MS = 300;
const OUTCOME = { stop_reason: "done", final_message: null, turns: 1, patch: SOLUTION } as const;

/**
 * A software engineering row's EVAL from the start of its sandbox to its end, less the bare test command on the
 * same files in a sandbox of the same kind, measured in turn with it.
 */
export async function evalOverhead(): Promise<void> {
  await using tally = await tallyImage();
  for (const driver of ["apptainer", "bubblewrap"] as const) {
    await using bundle = await setup(driver);
    const instance = swe.parse(tally.row);
    const evaluations: number[] = [];
    const commands: number[] = [];
    for (let index = 0; index < EVALUATIONS; index++) {
      const beginMs = performance.now();
      const handle = await bundle.start({ image: tally.image });
      const sandbox = await attachSandbox(handle);
      const { reward } = await swe.evaluate(instance, OUTCOME, evalContext({ sandbox }));
      if (reward !== 1) throw new Error("the row's own solution did not earn 1");
      const evaluatedMs = performance.now() - beginMs;
      // Once more where everything is in place: that is the command and nothing else.
      const command = ["python", "-m", "pytest", "-rA", "tests/test_sums.py"];
      const options = { cwd: "/testbed", timeoutMs: 60_000, maxOutputBytes: 1_000_000 };
      const commandMs = performance.now();
      await sandbox.exec(command, options);
      commands.push(performance.now() - commandMs);
      const endMs = performance.now();
      await endSandbox(handle);
      evaluations.push(evaluatedMs + performance.now() - endMs);
    }
    const added = evaluations.map((ms, index) => ms - (commands[index] ?? 0));
    const p50 = percentile(added, 0.5);
    print({
      bench: "eval-overhead",
      case: `${driver}: what EVAL adds to the test command, its sandbox's start and end included`,
      n: EVALUATIONS,
      p50,
      p99: percentile(added, 0.99),
      unit: "ms",
      against: `the bare test command: ${percentile(commands, 0.5)} ms`,
      ratio: round(p50 / percentile(commands, 0.5)),
      target: `under ${TARGET_MS} ms at p50`,
      met: p50 < TARGET_MS,
    });
  }
}
