import { ServiceError } from "../../errors.ts";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { makeProbes, type Probes } from "./probes.ts";
import { applyPatch, GIT_ENV } from "./repository.ts";
import type { SweInstance } from "./row.ts";
import { patchFiles, type TestPlan } from "./test-plan.ts";
import { addTwins } from "./twins.ts";

const TESTS_FILE = "/tmp/.rollout/tests.patch";
const MAX_TEST_FILE_BYTES = 16 << 20;
const MAX_PATCH_BYTES = 16 << 20;
const TAKE_LIMIT_MS = 60_000;

/** Writes what was changed in some files since the commit to standard output, and takes it back. */
const TAKE = `set -e; patch=$1; shift; git add -A -f -- "$@"
git diff --cached --no-color --no-ext-diff --no-textconv --full-index --binary \\
  --src-prefix=a/ --dst-prefix=b/ >"$patch"
git reset -q; git apply -R --whitespace=nowarn "$patch"; cat "$patch"; rm -f "$patch"`;

/** How the tests run now, and what remains to be put beside them, which needs no file that the change touches. */
export type PlacedTests = { tests: TestPlan; probes(): Promise<Probes | null> };

/**
 * Puts a row's tests in place, in the sandbox of the row's own commit. Those of a row with a script of its own, which
 * brings them itself, get ours beside them in the patch that the script applies.
 *
 * @param changed files of the agent's change: no tests of ours go there
 * @throws ServiceError `instance_invalid` where the row's tests do not fit its image.
 */
export async function placeTests(
  instance: SweInstance,
  changed: ReadonlySet<string>,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<PlacedTests> {
  const { tests, testPatch } = instance;
  if (!("script" in tests)) {
    if (testPatch !== "") await placePatch(instance, sandbox, signal);
    return { tests, probes: () => placeProbes(instance, changed, sandbox, signal) };
  }
  const none = { tests, probes: async () => null };
  const applied = testPatch.trim();
  if (!instance.probes || applied === "" || !tests.script.includes(applied)) return none;
  await placePatch(instance, sandbox, signal);
  const files = patchFiles(testPatch, "test_patch").map(({ path }) => path);
  // The patch brings no other file, so that no other may be written.
  const others = testFiles(instance).filter((file) => !files.includes(file));
  const probes = await addTwins(instance, new Set([...changed, ...others]), sandbox, signal);
  const argv = ["bash", "-c", TAKE, "take", TESTS_FILE, ...new Set(files)];
  const { exitCode, stdout, stderr } = await sandbox.exec(argv, {
    ...{ cwd: instance.folder, timeoutMs: TAKE_LIMIT_MS },
    env: { ...GIT_ENV, GIT_LITERAL_PATHSPECS: "1" },
    ...{ maxOutputBytes: MAX_PATCH_BYTES, signal },
  });
  if (exitCode !== 0) {
    throw new ServiceError("verifier_failed", `the row's tests can't be taken back: ${stderr}`);
  }
  // A file in another encoding would not survive.
  if (probes === null || stdout.includes("\uFFFD")) return none;
  const script = tests.script.replace(applied, () => stdout.trimEnd());
  return { tests: { ...tests, script }, probes: async () => probes };
}

async function placePatch(
  { testPatch, folder }: SweInstance,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<void> {
  const refused = await applyPatch(TESTS_FILE, Buffer.from(testPatch), folder, sandbox, signal);
  if (refused === null) return;
  const message = `the row's test_patch does not apply to its image: ${refused}`;
  throw new ServiceError("instance_invalid", message, { mend: "check base_commit and image" });
}

/** Tests of ours beside the row's, in files that the change leaves alone. */
async function placeProbes(
  instance: SweInstance,
  changed: ReadonlySet<string>,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<Probes | null> {
  const { tests, folder, grading } = instance;
  if (!instance.probes || !("lists" in grading)) return null;
  const twins = await addTwins(instance, changed, sandbox, signal);
  if (twins) return twins;
  const usable = new Set(testFiles(instance).filter((file) => !changed.has(file)));
  const probes = makeProbes(tests.format, usable);
  for (const [file, text] of probes?.appended ?? []) {
    await appendTo(`${folder}/${file}`, text, sandbox, signal);
  }
  return probes;
}

/** Of the tests that the right change makes pass, where their names say it. */
function testFiles({ grading }: SweInstance): string[] {
  const names = "lists" in grading ? grading.lists.failToPass : [];
  return [...new Set(names.flatMap((name) => /^([^:]+\.py)::/.exec(name)?.[1] ?? []))];
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
