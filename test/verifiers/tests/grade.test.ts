import { describe, expect, test } from "bun:test";
import { gradeTests } from "../../../src/verifiers/tests/grade.ts";

const LISTS = { failToPass: ["a.py::test_new"], passToPass: ["a.py::test_old"] };
const PASSED = "PASSED a.py::test_new\nPASSED a.py::test_old\n";

function grade(log: string, exitCode: number | null = 0, lists = LISTS) {
  return gradeTests(log, exitCode, "pytest", lists);
}

describe("a change is right when every named test passes", () => {
  test("and the reason counts them", () => {
    expect(grade(PASSED)).toEqual({
      resolved: true,
      rule: "tests_passed",
      reason: "All 2 tests that have to pass did.",
      failToPass: { passed: 1, of: 1 },
      passToPass: { passed: 1, of: 1 },
    });
  });

  test("an expected failure breaks nothing, and resolves nothing", () => {
    const xfail = (name: string) => grade(PASSED.replace(`PASSED ${name}`, `XFAIL ${name}`));
    expect(xfail("a.py::test_old")).toMatchObject({ resolved: true });
    expect(xfail("a.py::test_new")).toMatchObject({ resolved: false });
  });

  test("other tests may fail", () => {
    expect(grade(`${PASSED}FAILED a.py::test_flaky - no`, 1)).toMatchObject({ resolved: true });
  });
});

describe("a change is wrong when a named test", () => {
  const cases: [what: string, log: string, reason: string][] = [
    ["fails", "FAILED a.py::test_new - no\nPASSED a.py::test_old", "a.py::test_new (failed)"],
    ["is not in the log", "PASSED a.py::test_new", "a.py::test_old (not reported)"],
    ["is broken", "PASSED a.py::test_new\nERROR a.py::test_old", "a.py::test_old (error)"],
  ];
  test.each(cases)("%s", (_what, log, reason) => {
    expect(grade(log, 1)).toMatchObject({
      resolved: false,
      rule: "tests_failed",
      reason: `Tests that have to pass did not: ${reason}.`,
    });
  });
});

test("a skipped test is no resolution, and no regression", () => {
  const log = "test_new (m.C) ... skipped 'no'\ntest_old (m.C) ... ok\n";
  const lists = { failToPass: ["test_new (m.C)"], passToPass: ["test_old (m.C)"] };
  expect(gradeTests(log, 0, "unittest", lists)).toMatchObject({ rule: "tests_failed" });
  const swapped = { failToPass: lists.passToPass, passToPass: lists.failToPass };
  expect(gradeTests(log, 0, "unittest", swapped)).toMatchObject({ rule: "tests_passed" });
});

test("a log without tests resolves nothing", () => {
  expect(grade("Killed\n")).toMatchObject({ resolved: false, rule: "no_test_report" });
});

test("a log without failures does not go with a command that failed", () => {
  expect(grade(PASSED, 3)).toMatchObject({ resolved: false, rule: "report_contradicts_exit" });
});

test("a list's name that is cut off in its parameters stands for what begins with it", () => {
  const lists = { failToPass: ["a.py::test[x"], passToPass: [] };
  expect(grade("PASSED a.py::test[x-1]\nPASSED a.py::test[x-2]", 0, lists)).toMatchObject({
    resolved: true,
  });
  expect(grade("PASSED a.py::test[x-1]\nFAILED a.py::test[x-2]", 1, lists)).toMatchObject({
    resolved: false,
  });
});

describe("a format that names failures only", () => {
  const lists = { failToPass: ["sums carries"], passToPass: ["sums adds"] };

  test("lets a silent test pass when the suite ran", () => {
    expect(gradeTests("2 specs, 0 failures\n", 0, "jasmine-failures", lists).resolved).toBe(true);
  });

  test("lets nothing pass when it did not", () => {
    for (const log of ["Failed to launch\n", "0 specs, 0 failures\n"]) {
      expect(gradeTests(log, 0, "jasmine-failures", lists).resolved).toBe(false);
    }
  });
});
