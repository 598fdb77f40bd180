import { z } from "zod";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { Probes } from "./probes.ts";
import type { SweInstance } from "./row.ts";
import { patchFiles } from "./test-plan.ts";
import TWINS from "./twins.py" with { type: "text" };

const MOST = 4;
const LIMIT_MS = 60_000;

/** Of these the copies' results are read by the names of the tests that they are copies of. */
type Known = {
  /** Null where the name does not say it. */
  file: string | null;
  class: string | null;
  name: string;
  /** What the log calls a test of that file and class. */
  logged(name: string): string;
};

/** The script needs what Python knows since 3.8; the tests' own may be older. */
const RUN = `for python in /usr/bin/python3 /opt/miniconda3/bin/python3 python3; do
  command -v "$python" >/dev/null || continue
  "$python" -I -S -c "$1"; code=$?
  [ $code -eq 8 ] || exit $code
done
exit 8`;

const madeSchema = z.array(z.object({ test: z.int(), name: z.string() }));

/**
 * Copies of a row's own tests beside them, each with a change by which it has to fail once the test itself passes. A
 * runner that code under test has patched can't tell the two apart without the right answer.
 *
 * @param changed files of the agent's change, which stay as they are
 * @returns null where there is no test to be copied, or no Python to do it.
 */
export async function addTwins(
  instance: SweInstance,
  changed: ReadonlySet<string>,
  sandbox: Sandbox,
  signal: AbortSignal,
): Promise<Probes | null> {
  const { id, folder, grading, tests, testPatch } = instance;
  if (!("lists" in grading)) return null;
  const named = grading.lists.failToPass.flatMap((name) => knownTest(name) ?? []);
  const known = [...new Map(named.map((test) => [test.logged(test.name), test])).values()];
  const usable = known.filter(({ file }) => file === null || !changed.has(file));
  if (usable.length === 0) return null;
  const files = patchFiles(testPatch, "test_patch")
    .filter(
      ({ path, change }) => change !== "deleted" && path.endsWith(".py") && !changed.has(path),
    )
    .map(({ path }) => path);
  const plan = {
    ...{ seed: id, folder, files, most: MOST },
    // unittest names a test by its docstring, which a copy would share.
    docstrings: tests.format !== "unittest",
    tests: usable.map((test) => ({ file: test.file, class: test.class, name: test.name })),
  };
  const { exitCode, stdout } = await sandbox.exec(["sh", "-c", RUN, "twins", TWINS], {
    ...{
      cwd: "/",
      stdin: JSON.stringify(plan),
      timeoutMs: LIMIT_MS,
      patienceMs: 10 * LIMIT_MS,
      maxOutputBytes: 1 << 16,
      signal,
    },
  });
  if (exitCode !== 0) return null;
  const made = madeSchema.parse(JSON.parse(stdout));
  if (made.length === 0) return null;
  const names = made.map(({ test, name }) => usable[test]?.logged(name) ?? name);
  return { appended: new Map(), expected: new Map(names.map((name) => [name, "failed"])) };
}

/** A test by the name that pytest, unittest or SymPy's runner gives it; null where that says too little. */
function knownTest(listed: string): Known | null {
  const [path = "", ...inside] = (listed.split("[")[0] ?? "").split("::");
  const name = inside.at(-1);
  if (path.endsWith(".py") && name !== undefined && inside.length <= 2) {
    const owner = inside.length === 2 ? (inside[0] ?? null) : null;
    const start = [path, ...inside.slice(0, -1)].join("::");
    return { file: path, class: owner, name, logged: (other) => `${start}::${other}` };
  }
  const [, method, place] = /^(test\w*) \(([\w.]+)\)$/.exec(listed) ?? [];
  if (method !== undefined && place !== undefined) {
    // Python names the method twice since 3.11.
    const twice = place.endsWith(`.${method}`);
    const start = twice ? place.slice(0, -method.length - 1) : place;
    return {
      ...{ file: null, class: start.split(".").at(-1) ?? null, name: method },
      logged: (other) => `${other} (${start}${twice ? `.${other}` : ""})`,
    };
  }
  if (!/^test_\w+$/.test(listed)) return null;
  return { file: null, class: null, name: listed, logged: (other) => other };
}
