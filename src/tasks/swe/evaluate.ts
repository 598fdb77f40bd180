import { ServiceError } from "../../errors.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Outcome } from "../../trajectory/record.ts";
import type { Verdict } from "../../verifiers/verdict.ts";
import { judge, leftText, MAX_LOG_BYTES, type TestRun, zero } from "./judge.ts";
import { joinPatch, PatchError, type PatchFile, parsePatch } from "./patch.ts";
import { makeProbes, type Probes } from "./probes.ts";
import { addsAlwaysEqual, applicable, type Left } from "./protected.ts";
import { GIT_ENV, prepareRepository } from "./repository.ts";
import type { SweInstance } from "./row.ts";
import { patchFiles } from "./test-plan.ts";

const APPLY_LIMIT_MS = 120_000;
const MAX_TEST_FILE_BYTES = 16 << 20;

const SOLUTION_FILE = "/tmp/.rollout/solution.patch";
const TESTS_FILE = "/tmp/.rollout/tests.patch";

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
  const probes = await placeTests(instance, sandbox, signal);
  const refused = await apply(SOLUTION_FILE, joinBytes(chosen.apply), instance, sandbox, signal);
  if (refused !== null) {
    return zero("patch_does_not_apply", `The change does not apply: ${refused}`);
  }
  return judge(instance, await runTests(instance, sandbox, signal), probes, chosen.left);
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

/** The row's tests, and ours beside them. A script of the row's own brings its tests itself. */
async function placeTests(
  instance: SweInstance,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<Probes | null> {
  const { tests, testPatch, folder } = instance;
  if ("script" in tests) return null;
  if (testPatch !== "") {
    const refused = await apply(TESTS_FILE, Buffer.from(testPatch), instance, sandbox, signal);
    if (refused !== null) {
      const message = `the row's test_patch does not apply to its image: ${refused}`;
      throw new ServiceError("instance_invalid", message, { mend: "check base_commit and image" });
    }
  }
  if (!instance.probes || !("lists" in instance.grading)) return null;
  const probes = makeProbes(tests.format, instance.grading.lists.failToPass);
  for (const [file, text] of probes?.appended ?? []) {
    await appendTo(`${folder}/${file}`, text, sandbox, signal);
  }
  return probes;
}

/** @throws ServiceError `instance_invalid` where the row names a test of a file that is not there. */
async function appendTo(
  path: string,
  text: string,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<void> {
  try {
    const content = Buffer.from(await sandbox.readFile(path, MAX_TEST_FILE_BYTES, signal));
    const whole = Buffer.concat([content, Buffer.from(text)]);
    await sandbox.writeFile(path, whole, 0o644, signal);
  } catch (error) {
    signal.throwIfAborted();
    const message = `FAIL_TO_PASS names a test of ${path}: ${(error as Error).message}`;
    throw new ServiceError("instance_invalid", message, { cause: error });
  }
}

/** Null where it applied; else why not. */
async function apply(
  path: string,
  patch: Buffer,
  { folder }: SweInstance,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<string | null> {
  await sandbox.writeFile(path, patch, 0o600, signal);
  const git = ["git", "-c", "core.hooksPath=/dev/null", "apply", "--whitespace=nowarn", path];
  const options = { timeoutMs: APPLY_LIMIT_MS, maxOutputBytes: 2000, env: GIT_ENV, signal };
  const { exitCode, stderr } = await sandbox.exec(git, { ...options, cwd: folder });
  await sandbox.exec(["rm", "-f", path], options);
  return exitCode === 0 ? null : stderr.trim().replace(/\s+/g, " ");
}

/**
 * The log comes through a pipe and not by a file in the sandbox: what has been printed can't be taken back, by
 * whatever the change has left running.
 */
async function runTests(
  { folder, tests }: SweInstance,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<TestRun> {
  const command =
    "script" in tests
      ? tests.script
      : `${tests.command} ${tests.targets.map((target) => quoted(target)).join(" ")}`;
  const script = `exec 2>&1\ncd ${quoted(folder)} || exit 125\n${ENVIRONMENT}\n${command}\n`;
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

function quoted(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`;
}
