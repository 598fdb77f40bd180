import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { attachSandbox } from "../../../src/sandbox/attach.ts";
import type { DriverName, Sandbox } from "../../../src/sandbox/sandbox.ts";
import { swe } from "../../../src/tasks/swe/swe.ts";
import { type Bundle, EXEC, NO_ABORT, setup } from "../../sandbox/setup.ts";
import { failureOf } from "../../support/failure.ts";
import { evalContext } from "../../support/task-context.ts";
import { evaluate, outcomeOf, prepared, rollOut } from "./setup.ts";
import { SOLUTION, SOLVE, scriptRow, type Tally, tallyImage } from "./tally.ts";

let tally: Tally;
let bundle: Bundle;

beforeAll(async () => {
  tally = await tallyImage();
  bundle = await setup("bubblewrap");
});

afterAll(async () => {
  await bundle[Symbol.asyncDispose]();
  await tally[Symbol.asyncDispose]();
});

const WRONG = SOLUTION.replace("(ordered[half - 1] + ordered[half]) / 2", "ordered[half - 1]");
const AT = { ...EXEC, cwd: "/testbed" };

describe("what INIT leaves of a repository", () => {
  const cases: [driver: DriverName][] = [["bubblewrap"], ["apptainer"]];
  test.each(cases)("is one commit, and nothing that leads beyond it (%s)", async (driver) => {
    await using own = await setup(driver);
    const sandbox = await prepared(own, tally.row);
    const shown = async (command: string) =>
      (await sandbox.exec(["bash", "-c", command], AT)).stdout.trim();
    expect(await shown("git rev-parse HEAD")).toBe(tally.row.base_commit as string);
    expect(await shown("git log --all --format=%s")).toBe("Add medians");
    expect(await shown("git status --porcelain; git stash list; git tag; git remote")).toBe("");
    expect(await shown("git reflog; git worktree list | tail -n +2; git for-each-ref")).toBe(
      `${tally.row.base_commit} commit\trefs/heads/main`,
    );
    // Commit, four folders, seven files: nothing else is in the store.
    expect(await shown("git cat-file --batch-all-objects --batch-check | wc -l")).toBe("12");
    expect(await shown("git fsck --full && git diff --stat HEAD")).toBe("");
    expect(await shown("grep -rl half . | wc -l")).toBe("0");
  });

  test("still takes commits, branches and diffs", async () => {
    const sandbox = await prepared(bundle, tally.row);
    const work = `set -e; git checkout -qb work; echo x >new.py; git add -A
git -c user.name=a -c user.email=a@b commit -qm new; git diff --stat ${tally.row.base_commit} | tail -1; git log --oneline | wc -l`;
    const { stdout, exitCode } = await sandbox.exec(["bash", "-c", work], AT);
    expect([exitCode, stdout]).toEqual([0, " 1 file changed, 1 insertion(+)\n2\n"]);
  });

  test("is a typed failure where the image has no such folder", async () => {
    const row = { ...tally.row, folder: "/nowhere" };
    expect(await failureOf(() => prepared(bundle, row))).toMatchObject({
      code: "image_invalid",
      boundary: "sandbox",
    });
  });
});

describe("the change that RUN takes", () => {
  test("is the difference to the commit that the task began at, committed or not", async () => {
    const committed = `${SOLVE} && git -c user.name=a -c user.email=a@b commit -qam fixed && echo new >notes.txt`;
    const { patch, flags } = await rollOut(bundle, tally.row, committed);
    expect(patch?.match(/^diff --git .*/gm)).toEqual([
      "diff --git a/notes.txt b/notes.txt",
      "diff --git a/tally/sums.py b/tally/sums.py",
    ]);
    expect(flags).toBeUndefined();
  });

  test("leaves out binary and huge files and what is ignored, and takes a nested repository's files", async () => {
    const script = `cd /testbed && printf 'x = 1\\n' >tally/new.py && printf '\\0\\1' >tally/data.bin && printf '\\0' >>docs/logo.bin
head -c 3000000 /dev/zero | tr '\\0' x >huge.txt; mkdir -p build && echo x >build/out.txt
mkdir inner && cd inner && git init -q && echo y >file.py && git add -A && git -c user.name=a -c user.email=a@b commit -qm x`;
    const { patch, flags } = await rollOut(bundle, tally.row, script);
    expect(patch?.match(/^diff --git a\/(\S+)/gm)).toEqual([
      "diff --git a/inner/file.py",
      "diff --git a/tally/new.py",
    ]);
    expect(flags?.[0]?.match(/binary \S+/g)).toEqual([
      "binary docs/logo.bin",
      "binary tally/data.bin",
    ]);
  });

  test("keeps bytes that are no text in any encoding", async () => {
    const script = "cd /testbed && printf '# caf\\351\\n' >>tally/sums.py";
    const { patch, state } = await rollOut(bundle, tally.row, script);
    expect(patch).toContain("# caf�");
    const bytes = Buffer.from((state as { patch_base64: string }).patch_base64, "base64");
    expect(bytes.includes(Buffer.from("# caf\xe9", "latin1"))).toBe(true);
  });

  test("names files with blanks, quotes and other alphabets, and EVAL finds them", async () => {
    const script = `${SOLVE} && echo x >'a b.txt' && echo x >'größe "q".txt' && printf x >$'tab\\there'`;
    const outcome = await rollOut(bundle, tally.row, script);
    expect(await evaluate(bundle, tally.row, outcome)).toMatchObject({ reward: 1 });
  });
});

describe("EVAL", () => {
  test("gives the row's own solution 1, a wrong one 0, and none 0", async () => {
    const rules = [];
    for (const patch of [SOLUTION, WRONG, ""]) {
      const { reward, rule } = await evaluate(bundle, tally.row, outcomeOf(patch));
      rules.push([reward, rule]);
    }
    expect(rules).toEqual([
      [1, "tests_passed"],
      [0, "tests_failed"],
      [0, "empty_patch"],
    ]);
  });

  test("says why a change could not be tested", async () => {
    const rules = [];
    const elsewhere = SOLUTION.replace("sorted(numbers)", "sorted(values)");
    for (const patch of [elsewhere, "not a patch\n", SOLUTION.slice(0, -60)]) {
      const { reward, rule } = await evaluate(bundle, tally.row, outcomeOf(patch));
      rules.push([reward, rule]);
    }
    expect(rules).toEqual([
      [0, "patch_does_not_apply"],
      [0, "malformed_patch"],
      [0, "malformed_patch"],
    ]);
  });

  test("ends tests that hang by the row's own limit", async () => {
    const row = { ...tally.row, test_timeout_s: 1 };
    const hanging = SOLUTION.replace("half = len(ordered) // 2", "while True: pass");
    expect(await evaluate(bundle, row, outcomeOf(hanging))).toMatchObject({
      reward: 0,
      rule: "tests_timed_out",
    });
  });

  test("gives nothing for a log whose middle is missing", async () => {
    const loud = `half = len(ordered) // 2\n+    __import__("os").write(1, "€".encode() * 6_000_000)`;
    const flooding = SOLUTION.replace("half = len(ordered) // 2", loud).replace(
      "+8,7 @@",
      "+8,8 @@",
    );
    const row = { ...tally.row, test_cmd: "python -m pytest -rA -s" };
    expect(await evaluate(bundle, row, outcomeOf(flooding))).toMatchObject({
      reward: 0,
      rule: "log_too_large",
    });
  });

  test("fails, and gives no reward, where the row's own tests do not fit its image", async () => {
    const row = {
      ...tally.row,
      test_patch: tally.row.test_patch?.toString().replaceAll("[3, 1, 2]", "[9]"),
    };
    expect(await failureOf(() => evaluate(bundle, row, outcomeOf(SOLUTION)))).toMatchObject({
      code: "instance_invalid",
      boundary: "task",
    });
  });

  test("runs a row's own script, as rows of the fifth harness have it", async () => {
    const row = scriptRow(tally.row);
    expect(await evaluate(bundle, row, outcomeOf(SOLUTION))).toMatchObject({ reward: 1 });
    expect(await evaluate(bundle, row, outcomeOf(WRONG))).toMatchObject({ reward: 0 });
  });
});

describe("a row of R2E-Gym", () => {
  const row = () => ({
    data_source: "r2egym",
    data_kind: "r2egym",
    instance_id: "tally_final_abc",
    docker_image: tally.image,
    image: tally.image,
    problem_statement: "The median is wrong.",
    expected_output_json: JSON.stringify({ test_even: "PASSED", test_known: "FAILED" }),
  });
  const hidden = {
    "/r2e_tests/test_1.py":
      "from tally import median\n\n\ndef test_even():\n    assert median([1, 2]) == 1.5\n\n\ndef test_known():\n    assert 0\n",
    "/testbed/run_tests.sh": "python -m pytest -rA r2e_tests\n",
  };

  /** As an image of theirs has it. */
  async function imaged(): Promise<Sandbox> {
    const sandbox = await attachSandbox(await bundle.start({ image: tally.image }));
    for (const [path, text] of Object.entries(hidden)) await sandbox.writeFile(path, text);
    return sandbox;
  }

  test("hides the image's tests from the agent", async () => {
    const sandbox = await imaged();
    await swe.init(swe.parse(row()), sandbox, NO_ABORT);
    const { stdout } = await sandbox.exec(["bash", "-c", "ls -A /r2e_tests run_tests.sh"], AT);
    expect(stdout).toBe("/r2e_tests:\n");
  });

  test("counts where every test comes out as expected, a failing one as well", async () => {
    const rewards = [];
    for (const patch of [SOLUTION, WRONG]) {
      const context = evalContext({ sandbox: await imaged() });
      const { reward, rule } = await swe.evaluate(swe.parse(row()), outcomeOf(patch), context);
      rewards.push([reward, rule]);
    }
    expect(rewards).toEqual([
      [1, "tests_passed"],
      [0, "tests_failed"],
    ]);
  });
});

describe("a row of SWE-smith", () => {
  const bug = `diff --git a/tally/sums.py b/tally/sums.py
--- a/tally/sums.py
+++ b/tally/sums.py
@@ -1,5 +1,5 @@
 def total(numbers):
-    return sum(numbers)
+    return sum(numbers) + 1
 
 
 def mean(numbers):
`;
  const row = () => ({
    data_source: "swesmith",
    instance_id: "example__tally.abc.lm_1",
    repo: "swesmith/example__tally.abc",
    patch: bug,
    FAIL_TO_PASS: ["tests/test_sums.py::test_total"],
    PASS_TO_PASS: ["tests/test_sums.py::test_median_of_odd_count"],
    image_name: tally.image,
    image: tally.image,
    test_cmd: "python -m pytest --disable-warnings --color=no --tb=no --verbose",
  });

  test("begins with its bug in place and without its tests, and ends where the bug is gone", async () => {
    const mend = "cd /testbed && test ! -e tests/test_sums.py && sed -i 's/ + 1//' tally/sums.py";
    const outcome = await rollOut(bundle, row(), mend);
    expect(await evaluate(bundle, row(), outcome)).toMatchObject({ reward: 1 });
    const nothing = await rollOut(bundle, row(), "cd /testbed && echo x >>README.md");
    expect(await evaluate(bundle, row(), nothing)).toMatchObject({
      reward: 0,
      rule: "tests_failed",
    });
  });
});
