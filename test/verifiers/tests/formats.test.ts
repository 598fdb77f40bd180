import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  LOG_FORMATS,
  type LogFormatName,
  logFormatNamed,
} from "../../../src/verifiers/tests/formats.ts";
import { gradeTests } from "../../../src/verifiers/tests/grade.ts";
import { statusesOf } from "../../../src/verifiers/tests/status.ts";

/** Written by `record-logs` with the real runners. */
function logNamed(name: string): string {
  return readFileSync(join(import.meta.dir, "logs", `${name}.log`), "utf8");
}

function statuses(log: string, format: keyof typeof LOG_FORMATS): Record<string, string> {
  return Object.fromEntries(statusesOf(LOG_FORMATS[format].parse(log)));
}

const SAMPLE = "suite/test_sample.py";
const SHORT = {
  [`${SAMPLE}::test_options[plain]`]: "passed",
  [`${SAMPLE}::test_options[two`]: "passed",
  [`${SAMPLE}::test_options[/tmp/deep/file.txt]`]: "passed",
  [`${SAMPLE}::test_options[a`]: "failed",
  [`${SAMPLE}::test_passes_and_prints`]: "passed",
  [`${SAMPLE}::TestGroup::test_member`]: "passed",
  [`${SAMPLE}::Case::test_case`]: "passed",
  [`${SAMPLE}::test_expected`]: "xfail",
  [`${SAMPLE}::test_setup_error`]: "error",
  [`${SAMPLE}::test_fails`]: "failed",
  [`${SAMPLE}::test_raises`]: "failed",
};
/** A test that passes prints what looks like a failure; no harness can tell. */
const PRINTED = { [`${SAMPLE}::test_printed`]: "failed" };

const UNCUT = Object.fromEntries(
  Object.entries(SHORT).filter(([name]) => !/\[(two|a)$/.test(name)),
);

/** As the harness has it, a message is cut off failures only. */
const WHOLE = {
  ...UNCUT,
  [`${SAMPLE}::test_options[two words]`]: "passed",
  [`${SAMPLE}::test_setup_error - OSError: no fixture`]: "error",
  [`${SAMPLE}::test_options[a`]: "failed",
};

const CASES: [log: string, format: keyof typeof LOG_FORMATS, expected: Record<string, string>][] = [
  ["pytest", "pytest", { ...SHORT, ...PRINTED }],
  ["pytest-xdist", "pytest", SHORT],
  [
    "pytest",
    "pytest-options",
    {
      ...Object.fromEntries(Object.entries(SHORT).filter(([name]) => !name.includes("/tmp"))),
      ...PRINTED,
      [`${SAMPLE}::test_options[/file.txt]`]: "passed",
    },
  ],
  [
    "pytest-color",
    "pytest-v2",
    {
      ...Object.fromEntries(
        Object.entries(WHOLE).filter(([name]) => !/(error|expected)$/.test(name)),
      ),
      [`${SAMPLE}::test_expected - known`]: "xfail",
    },
  ],
  [
    "pytest-classic",
    "pytest-v2",
    {
      ...WHOLE,
      // The progress lines name the whole test, the summary cuts at the message.
      [`${SAMPLE}::test_options[a - b]`]: "failed",
      [`${SAMPLE}::test_skipped`]: "skipped",
    },
  ],
  [
    "pytest-verbose",
    "pytest-progress",
    {
      ...UNCUT,
      [`${SAMPLE}::test_skipped`]: "skipped",
    },
  ],
  [
    "pytest-xdist",
    "pytest-progress",
    {
      ...SHORT,
      [`${SAMPLE}::test_skipped`]: "skipped",
    },
  ],
  [
    "pytest",
    "r2e",
    {
      "test_options[plain]": "passed",
      "test_options[two words]": "passed",
      "test_options[/tmp/deep/file.txt]": "passed",
      test_passes_and_prints: "passed",
      "TestGroup.test_member": "passed",
      "Case.test_case": "passed",
      "[1] suite/test_sample.py:32: not today": "skipped",
      test_setup_error: "error",
      "test_options[a": "failed",
      test_fails: "failed",
      test_raises: "failed",
    },
  ],
  [
    "pytest-seaborn",
    "seaborn",
    {
      ...Object.fromEntries(
        Object.entries(SHORT).filter(([, status]) => ["passed", "failed"].includes(status)),
      ),
      ...PRINTED,
    },
  ],
  [
    "unittest",
    "unittest",
    {
      "A test is named by its docstring.": "passed",
      "test_expected (test_unit.Sample.test_expected)": "xfail",
      "test_fails (test_unit.Sample.test_fails)": "failed",
      test_fails: "failed",
      "test_passes (test_unit.Sample.test_passes)": "passed",
      "test_prints (test_unit.Sample.test_prints)": "passed",
      "test_raises (test_unit.Sample.test_raises)": "error",
      test_raises: "error",
      "test_skipped (test_unit.Sample.test_skipped)": "skipped",
    },
  ],
  [
    "django",
    "unittest",
    {
      "A page answers.": "passed",
      "test_fails (app.tests.Views.test_fails)": "failed",
      test_fails: "failed",
      "test_passes (app.tests.Views.test_passes)": "passed",
    },
  ],
  [
    "sympy",
    "sympy",
    {
      test_passes: "passed",
      test_raises: "error",
      test_fails: "failed",
    },
  ],
  [
    "jest",
    "jest",
    { adds: "passed", carries: "failed", "skipped waits": "skipped", reads: "passed" },
  ],
  ["jest-files", "jest-files", { "js/sums.test.js": "failed", "js/words.test.js": "passed" }],
  [
    "vitest",
    "vitest",
    {
      "sums.test.js > sums > adds": "passed",
      "sums.test.js > sums > large > carries": "failed",
      "words.test.js > reads": "passed",
    },
  ],
  [
    "mocha-spec",
    "mocha-spec",
    { "sums.adds": "passed", "large.carries": "failed", "large.borrows": "passed" },
  ],
  ["mocha-min", "mocha-failures", { "sums large carries:": "failed" }],
  ["mocha-min", "nested-failures", { "sums:large:carries": "failed" }],
  [
    "mocha-json",
    "mocha-json",
    {
      "sums adds": "passed",
      "sums large borrows": "passed",
      "sums large carries": "failed",
    },
  ],
  ["jasmine", "jasmine-failures", { "sums carries": "failed" }],
  ["karma", "karma", { "sums > adds": "passed", "sums > carries": "failed" }],
  ["karma-progress", "karma-failures", { "sums carries": "failed" }],
  ["tap", "tap", { adds: "passed", carries: "failed" }],
];

describe("a recorded log gives the tests' statuses", () => {
  test.each(CASES)("of %s, read as %s", (log, format, expected) => {
    expect(statuses(logNamed(log), format)).toEqual(expected);
  });
});

describe("what the code under test prints does not outweigh the runner", () => {
  test("a printed PASSED line loses against the FAILED line, wherever it stands", () => {
    const failed = "FAILED a.py::test_x - assert 1 == 2";
    for (const log of [`PASSED a.py::test_x\n${failed}`, `${failed}\nPASSED a.py::test_x`]) {
      expect(statuses(log, "pytest")).toEqual({ "a.py::test_x": "failed" });
    }
  });

  test("an ok that a test prints itself loses against its FAIL heading", () => {
    const log =
      "test_x (m.C) ... \nok\nFAIL\n\n======\nFAIL: test_x (m.C)\n------\nTraceback (most recent call last):";
    expect(statuses(log, "unittest")).toEqual({ "test_x (m.C)": "failed", test_x: "failed" });
  });

  test("a second summary does not replace the first in R2E's format", () => {
    const header = "= short test summary info =";
    const log = `${header}\nPASSED a.py::test_x\n${header}\nFAILED a.py::test_x - no\n`;
    expect(statuses(log, "r2e")).toEqual({ test_x: "failed" });
  });

  test("names that are cut to the same text have the status of the last", () => {
    const log = "FAILED a.py::test_x[a b] - no\nPASSED a.py::test_x[a c]";
    expect(statuses(log, "pytest")).toEqual({ "a.py::test_x[a": "passed" });
  });
});

test("a word that every object knows is no status", () => {
  expect(statuses("a.py::test_a constructor\n", "pytest-v2")).toEqual({});
});

test("the harness's names for its parsers are known", () => {
  expect(logFormatNamed("parse_log_django")).toBe("unittest");
  expect(logFormatNamed("pytest")).toBe("pytest");
  expect(logFormatNamed("constructor")).toBeNull();
});

describe("a hostile log is read in bounded time", () => {
  // What takes the square of a log's length does not end in time with that much.
  const much = (text: string) => text.repeat(Math.ceil((256 << 10) / text.length));
  const logs: [name: string, log: string][] = [
    ["one line of underscores and names", `_${much(" a.py:b _")}`],
    ["numbers that promise an error", much("  1) a\n")],
    ["open parentheses", `✓ ${much(" (1")}`],
    ["dots", much(" ... ")],
    ["dots on lines", much("a ... \n")],
    ["braces", much("{\n")],
    ["escape sequences", much("\u001b[1m")],
    ["browsers", much("Chrome 1 (x) ")],
    ["indentation", much("  a\n   b\n")],
    ["a name of blanks", `test ${much(" ")}`],
    ["a long number", much("1")],
    ["open brackets", `FAILED ${much("[")}`],
    ["dots behind a mark", `[smoke] ${much(".")}`],
    ["failures that do not end", ` xvfb-run ${much("AssertionError: #")}`],
  ];
  test.each(logs)("%s", (_name, log) => {
    const startMs = performance.now();
    const lists = { failToPass: ["a"], passToPass: [] };
    for (const format of Object.keys(LOG_FORMATS) as LogFormatName[]) {
      gradeTests(log, 0, format, lists);
    }
    expect(performance.now() - startMs).toBeLessThan(15_000);
  });
});
