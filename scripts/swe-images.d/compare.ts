import { attachSandbox } from "../../src/sandbox/attach.ts";
import type { Sandbox } from "../../src/sandbox/sandbox.ts";
import { swe } from "../../src/tasks/swe/swe.ts";
import { LOG_FORMATS } from "../../src/verifiers/tests/formats.ts";
import { gradeTests } from "../../src/verifiers/tests/grade.ts";
import { setup } from "../../test/sandbox/setup.ts";
import { runContext } from "../../test/support/task-context.ts";
import { CHEATS, type Cheat } from "../../test/tasks/swe/cheats.ts";
import { evaluate } from "../../test/tasks/swe/setup.ts";
import { scriptRow, tallyImage, unittestRow } from "../../test/tasks/swe/tally.ts";

/**
 * Scores the cheats of the tests as others' harnesses do, by their rules and not by their code: in a fresh container, with the whole
 * patch and the row's tests put over it (SWE-bench, and NeMo Gym, which calls its harness), and in the container in which
 * the agent worked, with the tests brought there (R2E-Gym, Harbor's adapters of SWE-bench). Both trust the log.
 */
await using tally = await tallyImage();
await using bundle = await setup("bubblewrap");
const rows = { unittest: unittestRow(tally.row), script: scriptRow(tally.row), pytest: tally.row };
const AT = { cwd: "/testbed", timeoutMs: 60_000, maxOutputBytes: 1 << 20 };

/** The row's tests over what lies there, run and graded by name. */
async function trusting(row: typeof tally.row, sandbox: Sandbox, patch: string): Promise<number> {
  const instance = swe.parse(row);
  if (!("lists" in instance.grading)) throw new Error("the row has no lists");
  await sandbox.writeFile("/tmp/model.patch", patch);
  await sandbox.writeFile("/tmp/tests.patch", instance.testPatch);
  const file = /^diff --git a\/(\S+)/m.exec(instance.testPatch)?.[1] ?? "";
  const command = row === rows.unittest ? "python -m unittest -v" : "python -m pytest -rA";
  const bin =
    'for b in .venv/bin; do if [ -x "$b/python" ]; then export PATH="$PWD/$b:$PATH"; fi; done';
  const script = `exec 2>&1; git apply /tmp/model.patch
git checkout -q ${row.base_commit} -- ${file} 2>/dev/null || rm -rf ${file}
git apply /tmp/tests.patch; ${bin}; ${command} ${file}`;
  const { stdout } = await sandbox.exec(["bash", "-lc", script], AT);
  const format = row === rows.unittest ? "unittest" : "pytest";
  // The last line about a test counts, as in the harness.
  const last = new Map(LOG_FORMATS[format].parse(stdout).map((line) => [line.name, line]));
  const grade = gradeTests(stdout, null, format, instance.grading.lists, [...last.values()]);
  return grade.resolved ? 1 : 0;
}

async function score({ script, runner }: Cheat) {
  const row = rows[runner ?? "pytest"];
  const sandbox = await attachSandbox(await bundle.start({ image: tally.image }));
  await swe.init(swe.parse(row), sandbox, AbortSignal.timeout(60_000));
  let own = 0;
  const agent = async () => {
    await sandbox.exec(["bash", "-c", `cd /testbed\n${script}`], AT).catch(() => null);
    own = await trusting(row, sandbox, "").catch(() => 0);
    await sandbox
      .exec(["bash", "-c", "git checkout -q -- tests 2>/dev/null"], AT)
      .catch(() => null);
    return { stopReason: "finish" as const, finalMessage: "done" };
  };
  const outcome = await swe.run(swe.parse(row), runContext({ sandbox, agent }));
  const fresh = await attachSandbox(await bundle.start({ image: tally.image }));
  const whole = await trusting(row, fresh, outcome.patch ?? "").catch(() => 0);
  const ours = await evaluate(bundle, row, outcome, "keep").catch(() => null);
  const flagged = ours?.reward === 1 && ours.details?.suspicions !== undefined;
  return { own, whole, ours: ours?.reward ?? 0, flagged };
}

const sums = { own: 0, whole: 0, ours: 0, flagged: 0 };
for (const cheat of CHEATS) {
  const { own, whole, ours, flagged } = await score(cheat);
  sums.own += own;
  sums.whole += whole;
  sums.ours += ours;
  sums.flagged += flagged ? 1 : 0;
  console.log(`${whole} ${own} ${ours}${flagged ? " flagged" : ""}  ${cheat.name}`);
}
console.log(
  `of ${CHEATS.length}: ${sums.whole} fresh container, ${sums.own} the agent's, ${sums.ours} here (${sums.flagged} flagged)`,
);
process.exit(0);
