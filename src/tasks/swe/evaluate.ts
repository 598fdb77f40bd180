import { shellWord } from "../../lib/shell-word.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Outcome } from "../../trajectory/record.ts";
import type { Verdict } from "../../verifiers/verdict.ts";
import type { EvalContext } from "../task-kind.ts";
import { workLimit } from "../work-limit.ts";
import { judge, leftText, MAX_LOG_BYTES, type OfSuspicious, type TestRun, zero } from "./judge.ts";
import { joinPatch, PatchError, type PatchFile, parsePatch } from "./patch.ts";
import { placeTests } from "./place-tests.ts";
import { addsAlwaysEqual, applicable, type Left } from "./protected.ts";
import { applyPatch, GIT_ENV, prepareRepository } from "./repository.ts";
import type { SweInstance } from "./row.ts";
import { suspicionsOf } from "./suspicions.ts";
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
  ofSuspicious: OfSuspicious,
  sandbox: Sandbox,
  context: Pick<EvalContext, "limitMs" | "untilMs" | "signal">,
): Promise<Verdict> {
  const { signal } = context;
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
  const environment = await imageEnvironment(instance.folder, sandbox, signal);
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
  const { folder } = instance;
  const own = strictFiles(instance.solution ?? instance.bug ?? "");
  const suspicions = await suspicionsOf(chosen.apply, own, folder, sandbox, signal);
  // The row's own script takes its tests from the commit.
  if (!("script" in placed.tests)) {
    await prepareRepository({ ...instance, baseCommit: null, bug: null }, sandbox, false, signal);
  }
  const run = await runTests(folder, placed.tests, environment, sandbox, context);
  return judge(instance, run, { probes, left: chosen.left, suspicions }, ofSuspicious);
}

const ENVIRONMENT_LIMIT_MS = 30_000;

/** Variables of the image's own Python environment, before anything of the change is there. */
async function imageEnvironment(
  folder: string,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<Record<string, string>> {
  const script = `cd ${shellWord(folder)} || exit\n${ENVIRONMENT}\nprintf '%s\\0%s' "$PATH" "\${VIRTUAL_ENV-}"`;
  const { stdout } = await sandbox.exec(["bash", "-s"], {
    ...{ cwd: "/", stdin: script, timeoutMs: ENVIRONMENT_LIMIT_MS, maxOutputBytes: 10_000, signal },
  });
  const [path, virtual] = stdout.split("\0");
  return { ...(path && { PATH: path }), ...(virtual && { VIRTUAL_ENV: virtual }) };
}

/** None of a patch that git would not write. */
function strictFiles(patch: string): PatchFile[] {
  try {
    return parsePatch(Buffer.from(patch).toString("latin1"));
  } catch (error) {
    if (error instanceof PatchError) return [];
    throw error;
  }
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
  environment: Record<string, string>,
  sandbox: Sandbox,
  context: Pick<EvalContext, "limitMs" | "untilMs" | "signal">,
): Promise<TestRun> {
  const command =
    "script" in tests
      ? tests.script
      : `${tests.command} ${tests.targets.map((target) => shellWord(target)).join(" ")}`;
  const script = `exec 2>&1\ncd ${shellWord(folder)} || exit 125\n${command}\n`;
  const { stdout, exitCode, timedOut, times } = await sandbox.exec(["bash", "-s"], {
    cwd: "/",
    env: { ...GIT_ENV, ...LOCALE, ...environment },
    stdin: script,
    ...workLimit(tests.timeoutMs, context),
    maxOutputBytes: MAX_LOG_BYTES,
    signal: context.signal,
  });
  return { log: stdout, exitCode, timedOut, times };
}

function joinBytes(files: readonly PatchFile[]): Buffer {
  return Buffer.from(joinPatch(files), "latin1");
}
