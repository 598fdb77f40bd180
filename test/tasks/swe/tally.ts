import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Row } from "../../../src/cli/rows.ts";
import { removeTree } from "../../../src/lib/remove-tree.ts";
import { derivedImage } from "./derived-image.ts";
import TALLY from "./tally.sh" with { type: "text" };

/** What makes the median right. */
export const SOLUTION = `diff --git a/tally/sums.py b/tally/sums.py
--- a/tally/sums.py
+++ b/tally/sums.py
@@ -8,4 +8,7 @@ def mean(numbers):
 
 def median(numbers):
     ordered = sorted(numbers)
-    return ordered[len(ordered) // 2]
+    half = len(ordered) // 2
+    if len(ordered) % 2:
+        return ordered[half]
+    return (ordered[half - 1] + ordered[half]) / 2
`;

/** Brings the tests that the agent does not see. */
export const TEST_PATCH = `diff --git a/tests/test_sums.py b/tests/test_sums.py
--- a/tests/test_sums.py
+++ b/tests/test_sums.py
@@ -13,3 +13,13 @@ def test_median_of_odd_count():
     from tally import median
 
     assert median([3, 1, 2]) == 2
+
+
+def test_median_of_even_count():
+    from tally import median
+
+    assert median([4, 1, 2, 3]) == 2.5
+
+
+def test_median_of_two():
+    assert __import__("tally").median([1, 2]) == 1.5
`;

/** Commands that bring the solution about, for an agent. */
export const SOLVE = `cat >/tmp/solution.patch <<'END'
${SOLUTION}END
cd /testbed && git apply /tmp/solution.patch`;

/** As `TEST_PATCH`, for unittest's own runner. */
const UNITTEST_PATCH = `diff --git a/tests/test_even.py b/tests/test_even.py
new file mode 100644
--- /dev/null
+++ b/tests/test_even.py
@@ -0,0 +1,12 @@
+import unittest
+
+from tally import median
+
+
+class EvenTest(unittest.TestCase):
+    def test_count(self):
+        self.assertEqual(median([4, 1, 2, 3]), 2.5)
+
+    def test_two(self):
+        with self.subTest("first"):
+            self.assertEqual(median([1, 2]), 1.5)
`;

/** The same issue, tested by unittest. */
export function unittestRow(row: Row): Row {
  const named = (name: string) => `${name} (tests.test_even.EvenTest.${name})`;
  return {
    ...row,
    test_patch: UNITTEST_PATCH,
    FAIL_TO_PASS: [named("test_count"), named("test_two")],
    PASS_TO_PASS: [],
    test_cmd: "python -m unittest -v",
    log_parser: "parse_log_django",
  };
}

/** The same row with a script of its own, as the benchmark's fifth harness writes it. */
export function scriptRow({ test_cmd: _, ...row }: Row): Row {
  const script = `#!/bin/bash
set -uxo pipefail
cd /testbed
git checkout ${row.base_commit} tests/test_sums.py
git apply -v - <<'EOF_114329324912'
${row.test_patch}EOF_114329324912
: '>>>>> Start Test Output'
python -m pytest -rA tests/test_sums.py
: '>>>>> End Test Output'
git checkout ${row.base_commit} tests/test_sums.py
`;
  return { ...row, eval_script: script };
}

export type Tally = AsyncDisposable & { image: string; row: Row };

/** The base image with the repository in it, made with the image's own git. */
export async function tallyImage(): Promise<Tally> {
  const folder = await mkdtemp(join(tmpdir(), "rolloutd-tally-"));
  const { image, made } = await derivedImage(folder, async (sandbox) => {
    const options = { timeoutMs: 60_000, maxOutputBytes: 10_000 };
    const argv = ["bash", "-c", TALLY, "tally", "/tmp/testbed"];
    const { exitCode, stdout, stderr } = await sandbox.exec(argv, options);
    if (exitCode !== 0) throw new Error(`the repository was not made: ${stderr}`);
    return stdout.trim();
  });
  const row = {
    data_source: "swebench",
    instance_id: "example__tally-1",
    repo: "example/tally",
    version: "1.0",
    base_commit: made,
    problem_statement: "median([1, 2]) gives 2, and should give 1.5.",
    patch: SOLUTION,
    test_patch: TEST_PATCH,
    FAIL_TO_PASS:
      '["tests/test_sums.py::test_median_of_even_count", "tests/test_sums.py::test_median_of_two"]',
    PASS_TO_PASS: [
      "tests/test_sums.py::test_total",
      "tests/test_sums.py::test_mean",
      "tests/test_sums.py::test_median_of_odd_count",
    ],
    image,
    test_cmd: "python -m pytest -rA",
    log_parser: "parse_log_pytest",
  };
  return { image, row, [Symbol.asyncDispose]: () => removeTree(folder) };
}
