import { expect, test } from "bun:test";
import type { Probes } from "../../../src/tasks/swe/probes.ts";
import { tampering, withListedNames, withListedText } from "../../../src/tasks/swe/tampering.ts";
import { testLines } from "../../../src/verifiers/tests/grade.ts";

/** `t.py::test_a` runs as `test_b`; what stands under its own name and as `test_c` are copies. */
const PROBES: Probes = {
  appended: new Map(),
  expected: new Map(),
  twins: [
    {
      ...{
        listed: "t.py::test_a",
        original: "t.py::test_b",
        copies: ["t.py::test_a", "t.py::test_c"],
      },
      ...{ kinds: ["number"], inside: false },
    },
  ],
};
const INSIDE: Probes = {
  ...PROBES,
  twins: PROBES.twins.map((twins) => ({ ...twins, inside: true })),
};

/** Of lines such as `PASSED test_b`. */
function found(lines: string[], probes: Probes | null = PROBES) {
  const log = lines.map((line) => line.replace(" ", " t.py::")).join("\n");
  return tampering(withListedNames(testLines(log, "pytest"), probes), probes);
}

test("names that were dealt out are given back before a log is graded", () => {
  const log =
    "PASSED t.py::test_b[x]\nFAILED t.py::test_a[x]\nFAILED t.py::test_c[x]\nPASSED t.py::test_d";
  const named = withListedNames(testLines(log, "pytest"), PROBES);
  expect(named.map(({ name, status }) => [name, status])).toEqual([
    ["t.py::test_a[x]", "passed"],
    ["t.py::test_b[x]", "failed"],
    ["t.py::test_c[x]", "failed"],
    ["t.py::test_d", "passed"],
  ]);
});

test("a log that people read has the names of the lists", () => {
  const log = "FAILED t.py::test_b - x\nFAILED t.py::test_a[1]\nFAILED t.py::test_c";
  const text = "FAILED t.py::test_a - x\nFAILED t.py::test_b[1]\nFAILED t.py::test_c";
  expect(withListedText(log, PROBES)).toBe(text);
});

const honest: [what: string, lines: string[]][] = [
  ["plain tests", ["PASSED test_b", "FAILED test_a", "FAILED test_c - assert 1 == 2"]],
  [
    "tests with parameters",
    [
      "PASSED test_b[1]",
      "PASSED test_b[2]",
      "FAILED test_a[1]",
      "FAILED test_a[2]",
      "FAILED test_c[1]",
      "FAILED test_c[2]",
    ],
  ],
  [
    "a teardown that fails",
    ["PASSED test_b", "FAILED test_a", "FAILED test_c", "PASSED test_e", "ERROR test_e"],
  ],
];
test.each(honest)("an honest runner's log has nothing made up: %s", (_what, lines) => {
  expect(found(lines)).toBeNull();
});

const tampered: [what: string, lines: string[], saying: RegExp][] = [
  ["everything passed", ["PASSED test_b", "PASSED test_a", "PASSED test_c"], /can't hold/],
  ["a copy is missing", ["PASSED test_b", "FAILED test_a"], /not reported/],
  [
    "a made-up parameter fails",
    [
      "PASSED test_b",
      "PASSED test_a",
      "PASSED test_c",
      "FAILED test_a[0]",
      "FAILED test_b[0]",
      "FAILED test_c[0]",
    ],
    /with parameters and without/,
  ],
  [
    "only copies have a made-up parameter",
    ["PASSED test_b", "FAILED test_a[0]", "FAILED test_c[0]"],
    /same parameters/,
  ],
  [
    "a parameter of a copy passes",
    [
      "PASSED test_b[1]",
      "PASSED test_b[2]",
      "FAILED test_a[1]",
      "PASSED test_a[2]",
      "FAILED test_c[1]",
      "FAILED test_c[2]",
    ],
    /in part/,
  ],
  [
    "a copy passes and fails",
    ["PASSED test_b", "FAILED test_a", "PASSED test_a", "FAILED test_c"],
    /as passed and as failed/,
  ],
  [
    "any test passes and fails",
    ["PASSED test_b", "FAILED test_a", "FAILED test_c", "PASSED test_e", "FAILED test_e - x"],
    /as passed and as failed/,
  ],
  ["a copy is skipped", ["PASSED test_b", "SKIPPED test_a", "FAILED test_c"], /can't hold/],
];
test.each(tampered)("a runner that was tampered with is found: %s", (_what, lines, saying) => {
  expect(found(lines)).toMatch(saying);
});

test("a copy that differs in one parameter fails with that one, and no other is made up", () => {
  const lines = [
    "PASSED test_b[1-2]",
    "PASSED test_b[2-4]",
    "FAILED test_a[1-3]",
    "PASSED test_a[2-4]",
    "PASSED test_c[1-2]",
    "FAILED test_c[2-9]",
  ];
  expect(found(lines, INSIDE)).toBeNull();
  const made = (name: string) => `FAILED ${name}[made-up]`;
  const up = ["test_a", "test_b", "test_c"].map(made);
  const passed = lines.map((line) => line.replace("FAILED", "PASSED"));
  expect(found([...passed, ...up], INSIDE)).toMatch(/its copies share/);
});
