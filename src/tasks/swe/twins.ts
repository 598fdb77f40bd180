import { z } from "zod";
import type { Sandbox } from "../../sandbox/sandbox.ts";
import { PYTHON } from "./image-python.ts";
import type { Probes } from "./probes.ts";
import type { SweInstance } from "./row.ts";
import { patchFiles } from "./test-plan.ts";
import PLACES from "./twin-places.py" with { type: "text" };
import TWINS from "./twins.py" with { type: "text" };

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

/** How many copies of how many tests: each costs a run of its test. */
const SHARES = { failToPass: { groups: 4, copies: 8 }, passToPass: { groups: 2, copies: 2 } };

const madeSchema = z.array(
  z.object({
    test: z.int(),
    original: z.string(),
    copies: z.array(z.string()),
    kinds: z.array(z.string()),
    inside: z.boolean(),
  }),
);

/**
 * Copies of a row's own tests beside them, each with changes by which exactly one of a test and its copies can hold. A
 * runner that code under test has patched can't tell which without the right answer.
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
  const { folder, grading, hidden, tests, testPatch } = instance;
  if (!("lists" in grading)) return null;
  // Of SWE-smith, whose tests are there from the start, those that the agent did not see.
  const brought = patchFiles(testPatch, "test_patch").flatMap(({ path, change }) =>
    change === "deleted" ? [] : path,
  );
  const files = [...new Set([...brought, ...hidden])].filter(
    (path) => path.endsWith(".py") && !path.startsWith("/") && !changed.has(path),
  );
  const usable: Known[] = [];
  const shareOf = (names: readonly string[], inFiles: boolean) => {
    const known = names
      .flatMap((name) => knownTest(name) ?? [])
      .filter(
        ({ file }) => file === null || (!changed.has(file) && (!inFiles || files.includes(file))),
      );
    const once = [...new Map(known.map((test) => [test.logged(test.name), test])).values()];
    return once.map((test) => ({
      ...{ test: usable.push(test) - 1, file: test.file, class: test.class, name: test.name },
    }));
  };
  const plan = {
    ...{ folder, files },
    // unittest names a test by its docstring, which a copy would share.
    docstrings: tests.format !== "unittest",
    shares: [
      { ...SHARES.failToPass, tests: shareOf(grading.lists.failToPass, false) },
      { ...SHARES.passToPass, tests: shareOf(grading.lists.passToPass, true) },
    ],
  };
  if (usable.length === 0) return null;
  const { exitCode, stdout } = await sandbox.exec(
    ["sh", "-c", PYTHON, "twins", `${PLACES}\n${TWINS}`],
    {
      ...{ cwd: "/", stdin: JSON.stringify(plan), timeoutMs: LIMIT_MS },
      patienceMs: 10 * LIMIT_MS,
      ...{ maxOutputBytes: 1 << 16, signal },
    },
  );
  if (exitCode !== 0) return null;
  const twins = madeSchema.parse(JSON.parse(stdout)).map(({ test, original, copies, ...rest }) => {
    const logged = (name: string) => usable[test]?.logged(name) ?? name;
    const listed = logged(usable[test]?.name ?? original);
    return { ...rest, listed, original: logged(original), copies: copies.map(logged) };
  });
  return twins.length === 0 ? null : { appended: new Map(), expected: new Map(), twins };
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
