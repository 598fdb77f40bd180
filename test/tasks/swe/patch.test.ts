import { describe, expect, test } from "bun:test";
import { joinPatch, PatchError, parsePatch, reversePatch } from "../../../src/tasks/swe/patch.ts";
import { addsAlwaysEqual, applicable } from "../../../src/tasks/swe/protected.ts";

const CHANGED = `diff --git a/a.py b/a.py
index 1..2 100644
--- a/a.py
+++ b/a.py
@@ -1,2 +1,2 @@ def f():
-x
+y
 z
`;
const ADDED = `diff --git a/b c.py b/b c.py
new file mode 100644
index 0..1
--- /dev/null
+++ b/b c.py\t
@@ -0,0 +1 @@
+x
\\ No newline at end of file
`;
const QUOTED = `diff --git "a/t\\tb.py" "b/t\\tb.py"
deleted file mode 100644
--- "a/t\\tb.py"
+++ /dev/null
@@ -1 +0,0 @@
-x
`;
const LINK = `diff --git a/l b/l
new file mode 120000
index 0..1
--- /dev/null
+++ b/l
@@ -0,0 +1 @@
+/etc
\\ No newline at end of file
`;
const RENAMED = `diff --git a/old.py b/new.py
similarity index 90%
rename from old.py
rename to new.py
--- a/old.py
+++ b/new.py
@@ -1 +1 @@
-x
+y
`;
const BINARY =
  "diff --git a/i.png b/i.png\nindex 1..2 100644\nBinary files a/i.png and b/i.png differ\n";
const MODE = "diff --git a/run.sh b/run.sh\nold mode 100644\nnew mode 100755\n";

describe("a patch is taken apart", () => {
  test("into its files, and put together again", () => {
    const patch = [CHANGED, ADDED, QUOTED, LINK, RENAMED, BINARY, MODE].join("");
    const files = parsePatch(patch);
    expect(files.map(({ text: _, ...rest }) => rest)).toEqual([
      { path: "a.py", kind: "text", change: "modified" },
      { path: "b c.py", kind: "text", change: "added" },
      { path: "t\tb.py", kind: "text", change: "deleted" },
      { path: "l", kind: "link", change: "added" },
      { path: "new.py", from: "old.py", kind: "text", change: "modified" },
      { path: "i.png", kind: "binary", change: "modified" },
      { path: "run.sh", kind: "text", change: "modified" },
    ]);
    expect(joinPatch(files)).toBe(patch);
  });

  const broken: [what: string, patch: string][] = [
    ["text before the first file", `hello\n${CHANGED}`],
    ["text between files", `${CHANGED}hello\n${ADDED}`],
    [
      "a file without a heading behind a hunk",
      `${CHANGED}--- a/t.py\n+++ b/t.py\n@@ -1 +1 @@\n-a\n+b\n`,
    ],
    ["a hunk that is cut off", CHANGED.split("\n").slice(0, -2).join("\n")],
    ["a hunk with a line too many", `${CHANGED}+w\n`],
    ["a hunk with a foreign line", CHANGED.replace("\n z\n", "\n!z\n")],
    ["two names of one file", CHANGED.replace("--- a/a.py", "--- a/t.py")],
    ["two names in the heading", CHANGED.replace("b/a.py", "b/t.py")],
    ["a path out of the repository", CHANGED.replaceAll("/a.py", "/../a.py")],
    ["an absolute path", CHANGED.replaceAll("/a.py", "//a.py")],
    ["a path into .git", CHANGED.replaceAll("/a.py", "/.GIT/a.py")],
    ["no prefix", CHANGED.replaceAll("a/a.py", "a.py").replaceAll("b/a.py", "a.py")],
  ];
  test.each(broken)("and refused for %s", (_what, patch) => {
    expect(() => parsePatch(patch)).toThrow(PatchError);
  });
});

describe("of a change is left out", () => {
  const file = (path: string) =>
    parsePatch(`diff --git a/${path} b/${path}\nold mode 100644\nnew mode 100755\n`);
  const row = { solution: new Set(["setup.cfg"]), tests: new Set(["lib/checks.py"]) };
  const reasonOf = (path: string) => applicable(file(path), row).left[0]?.why ?? null;

  test("what decides the verdict, and no source", () => {
    const deciding = ["conftest.py", "a/conftest.py", "pytest.ini", "tox.ini", "pyproject.toml"];
    deciding.push("sitecustomize.py", "x.pth", "p.egg-info/entry_points.txt", "tests/data.json");
    deciding.push("src/test_a.py", "a_test.py", "web/a.spec.ts", "jest.config.js", "_pytest/x.py");
    deciding.push(".gitattributes", "django/tests/x.py");
    deciding.push(
      ".venv/bin/python",
      "venv/lib/x.py",
      "env/bin/pytest",
      "bin/test",
      "bin/python3.9",
    );
    deciding.push("sphinx/testing/util.py", "pylint/testutils/lint_module_test.py");
    deciding.push("django/test/runner.py", "sympy/testing/runtests.py", "run_tests.sh");
    expect(deciding.filter((path) => reasonOf(path) !== "deciding")).toEqual([]);
    const sources = [
      "a.py",
      "src/testing_tools.py",
      "django/test/client.py",
      "contest.py",
      "latest.py",
      "bin/latest",
      "scripts/attestation.py",
    ];
    expect(sources.filter((path) => reasonOf(path) !== null)).toEqual([]);
  });

  test("the row's tests, but not what the row's own solution changes", () => {
    expect([reasonOf("lib/checks.py"), reasonOf("setup.cfg")]).toEqual(["test", null]);
  });

  test("a runner of the repository's own, unless the row is about it", () => {
    const about = { solution: new Set(["src/_pytest/logging.py"]), tests: new Set<string>() };
    const whyOf = (path: string) => applicable(file(path), about).left[0]?.why ?? null;
    expect(whyOf("src/_pytest/config/__init__.py")).toBe(null);
    expect(whyOf("_pytest/config.py")).toBe("deciding");
    expect(whyOf("src/_pytest/conftest.py")).toBe("deciding");
  });

  test("links, submodules and binary files", () => {
    const submodule =
      "diff --git a/s b/s\nindex 1..2 160000\n--- a/s\n+++ b/s\n@@ -1 +1 @@\n-x\n+y\n";
    const { left } = applicable(parsePatch(LINK + BINARY + submodule), row);
    expect(left.map(({ why }) => why)).toEqual(["link", "binary", "submodule"]);
  });
});

test("a class that equals everything is found, and an honest one is not", () => {
  const bad = [
    "+    def __eq__(self, other):\n+        return True\n",
    "+    def __eq__(self, other: object) -> bool: return True\n",
    '+    def __eq__(self, o):\n+        """Equal."""\n+        return True\n',
    '+x = type("X", (), {"__eq__": lambda a, b: True})\n',
    '+x = {"__ne__": lambda a, b: a != b, "__eq__": lambda a, b: True}\n',
    "+    def __eq__(self, other):\r\n+        return True\r\n",
    "+    def __eq__(self, other):\r        return True\r\n",
    "+    def __eq__(self, other):  # all\n+\n+        # are\n+        return 1\n",
  ];
  expect(bad.filter((patch) => !addsAlwaysEqual(patch, ""))).toEqual([]);
  const good =
    "+    def __eq__(self, other):\n+        return self.x == other.x\n+        return True\n";
  expect(addsAlwaysEqual(good, "")).toBe(false);
  expect(addsAlwaysEqual(bad[0] as string, bad[0] as string)).toBe(false);
});

test.each([
  ["+def __eq__(", ")"],
  ["+", "__eq__=lambda "],
  ["+def __eq__(a):", ": "],
  ["+def __eq__(a):\n", "+#\n"],
])("a patch of a megabyte is looked through at once: %s%s…", (start, repeated) => {
  const patch = start + repeated.repeat(Math.ceil(1e6 / repeated.length));
  const began = process.cpuUsage();
  expect(addsAlwaysEqual(patch, "")).toBe(false);
  expect(process.cpuUsage(began).user / 1e6).toBeLessThan(2);
});

test("a patch is turned round, and turned round again is itself", () => {
  const reversed = CHANGED.replace("1..2", "2..1").replace("-x\n+y", "+x\n-y");
  expect(reversePatch(CHANGED)).toBe(reversed);
  expect(reversePatch(reversed)).toBe(CHANGED);
  expect(() => reversePatch(ADDED)).toThrow(PatchError);
});
