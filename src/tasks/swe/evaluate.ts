import { shellWord } from "../../lib/shell-word.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Outcome } from "../../trajectory/record.ts";
import type { Verdict } from "../../verifiers/verdict.ts";
import { judge, leftText, MAX_LOG_BYTES, type TestRun, zero } from "./judge.ts";
import { joinPatch, PatchError, type PatchFile, parsePatch } from "./patch.ts";
import { placeTests } from "./place-tests.ts";
import { addsAlwaysEqual, applicable, type Left } from "./protected.ts";
import { applyPatch, GIT_ENV, prepareRepository } from "./repository.ts";
import type { SweInstance } from "./row.ts";
import { patchFiles, type TestPlan } from "./test-plan.ts";

/** Where a patch lies while git applies it. */
export const SOLUTION_FILE = "/tmp/.rollout/solution.patch";

/** Puts the image's own Python environment first, as the benchmarks' images have it. */
export const ENVIRONMENT = `for __bin in /opt/miniconda3/envs/testbed/bin "$PWD/.venv/bin"; do
  if [ -x "$__bin/python" ]; then export PATH="$__bin:$PATH" VIRTUAL_ENV="\${__bin%/bin}"; fi
done
unset __bin`;

const LOCALE = { LANG: "C.UTF-8", LC_ALL: "C.UTF-8", PYTHONIOENCODING: "utf8", NO_COLOR: "1" };

/** Scores a change in a fresh sandbox of the row's image. */
export async function evaluateChange(
  instance: SweInstance,
  outcome: Outcome,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<Verdict> {
  const patch = patchOf(outcome);
  if (patch === null) {
    const why = (outcome.flags ?? []).join("; ") || "there is none";
    return zero("no_patch", `The agent's change could not be taken: ${why}.`);
  }
  if (patch.length === 0) return zero("empty_patch", "The agent changed nothing.");
  const chosen = choose(instance, patch);
  if ("rule" in chosen) return chosen;
  await prepareRepository(instance, sandbox, false, signal);
  const changed = new Set(chosen.apply.flatMap(({ path, from = path }) => [path, from]));
  const placed = await placeTests(instance, changed, sandbox, signal);
  const solution = joinBytes(chosen.apply);
  // They touch no file in common.
  const [probes, refused] = await Promise.all([
    placed.probes(),
    applyPatch(SOLUTION_FILE, solution, instance.folder, sandbox, signal),
  ]);
  if (refused !== null) {
    return zero("patch_does_not_apply", `The change does not apply: ${refused}`);
  }
  const run = await runTests(instance.folder, placed.tests, sandbox, signal);
  return judge(instance, run, probes, chosen.left);
}

/** What RUN took. Bytes that are no text come beside it, so that none is lost. */
function patchOf({ patch, state }: Outcome): Buffer | null {
  const bytes = (state as { patch_base64?: unknown } | undefined)?.patch_base64;
  if (typeof bytes === "string") return Buffer.from(bytes, "base64");
  return patch === undefined ? null : Buffer.from(patch);
}

type Chosen = { apply: PatchFile[]; left: Left[] };

/** Bytes as characters of the same number: a patch may be in any encoding, and in several. */
function choose(instance: SweInstance, patch: Buffer): Chosen | Verdict {
  const text = patch.toString("latin1");
  let files: PatchFile[];
  try {
    files = parsePatch(text);
  } catch (error) {
    if (!(error instanceof PatchError)) throw error;
    return zero("malformed_patch", `The change is no patch that git writes: ${error.message}.`);
  }
  const own = instance.solution ?? instance.bug ?? "";
  const paths = (field: string, value: string) =>
    new Set(patchFiles(Buffer.from(value).toString("latin1"), field).map(({ path }) => path));
  const chosen = applicable(files, {
    solution: paths("patch", own),
    tests: new Set([...paths("test_patch", instance.testPatch), ...instance.hidden]),
  });
  if (chosen.apply.length === 0) {
    return zero("nothing_to_test", `The change touches nothing but ${leftText(chosen.left)}.`);
  }
  if (addsAlwaysEqual(joinPatch(chosen.apply), own)) {
    const reason = "The change adds a class that is equal to everything, which defeats tests.";
    return zero("always_equal", reason);
  }
  return chosen;
}

/**
 * The log comes through a pipe and not by a file in the sandbox: what has been printed can't be taken back, by
 * whatever the change has left running.
 */
async function runTests(
  folder: string,
  tests: TestPlan,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<TestRun> {
  const command =
    "script" in tests
      ? tests.script
      : `${tests.command} ${tests.targets.map((target) => shellWord(target)).join(" ")}`;
  const script = `exec 2>&1\ncd ${shellWord(folder)} || exit 125\n${ENVIRONMENT}\n${command}\n`;
  const { stdout, exitCode, timedOut } = await sandbox.exec(["bash", "-s"], {
    cwd: "/",
    env: { ...GIT_ENV, ...LOCALE },
    stdin: script,
    timeoutMs: tests.timeoutMs,
    maxOutputBytes: MAX_LOG_BYTES,
    signal,
  });
  return { log: stdout, exitCode, timedOut };
}

function joinBytes(files: readonly PatchFile[]): Buffer {
  return Buffer.from(joinPatch(files), "latin1");
}
