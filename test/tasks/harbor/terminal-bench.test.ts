import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { harbor } from "../../../src/tasks/harbor/harbor.ts";
import { pytestResults } from "../../../src/tasks/harbor/rewards.ts";
import { type Bundle, setup } from "../../sandbox/setup.ts";
import { failureOf } from "../../support/failure.ts";
import { type Folder, play, rowOf } from "./task-folder.ts";

let bundle: Bundle;

beforeAll(async () => {
  bundle = await setup("bubblewrap");
});

afterAll(() => bundle[Symbol.asyncDispose]());

const FIRST: Folder = {
  "task.yaml": `instruction: |-
  Write hello into greeting.txt.
author_name: anybody
difficulty: easy
parser_name: pytest
max_agent_timeout_sec: 120.0
max_test_timeout_sec: 30.0
`,
  Dockerfile: "FROM debian\nWORKDIR /app\n",
  "docker-compose.yaml": "services:\n  client:\n    build: .\n",
  "run-tests.sh": "#!/bin/bash\npython3 -m pytest -q -rA $TEST_DIR/test_outputs.py\n",
  "solution.sh": "#!/bin/bash\necho hello >greeting.txt\n",
  "tests/test_outputs.py":
    "def test_there():\n    open('/app/greeting.txt')\n\ndef test_text():\n    assert open('/app/greeting.txt').read() == 'hello\\n'\n",
};

const rowOfFirst = (changes: Folder = {}) => rowOf(changes, FIRST);

describe("a folder of Terminal-Bench 1", () => {
  test("earns 1 by its own solution and 0 by nothing or by half of it", async () => {
    const row = await rowOfFirst();
    expect(await play(bundle, row)).toMatchObject({ reward: 1, rule: "terminal_bench_tests" });
    expect((await play(bundle, row, { agent: "nothing" })).reward).toBe(0);
    expect((await play(bundle, row, { agent: ["echo x >greeting.txt"] })).reward).toBe(0);
  });

  test("has its limits and its prompt of task.yaml", async () => {
    expect(harbor.parse(await rowOfFirst())).toMatchObject({
      workdir: "/app",
      hasDockerfile: true,
      steps: [
        {
          instruction: "Write hello into greeting.txt.",
          agentTimeoutMs: 120_000,
          verifierTimeoutMs: 30_000,
        },
      ],
    });
  });

  test("may give its solution as the keys of a terminal", async () => {
    const yaml =
      "- command: echo hel >part\n- command: echo $(cat part)lo >greeting.txt\n  block: true\n";
    const row = await rowOfFirst({ "solution.sh": null, "solution.yaml": yaml });
    expect((await play(bundle, row)).reward).toBe(1);
  });

  test("is a failure where its tests print no summary, and no reward", async () => {
    const row = await rowOfFirst({ "run-tests.sh": "echo no pytest here\n" });
    expect(await failureOf(() => play(bundle, row))).toMatchObject({ code: "verifier_failed" });
  });

  for (const [line, why] of [
    ["parser_name: swelancer", 'asks for the parser "swelancer"'],
    ["run_tests_in_same_shell: true", "asks for run_tests_in_same_shell"],
  ] as const) {
    test(`is refused with ${line}`, async () => {
      const row = await rowOfFirst({
        "task.yaml": `instruction: x\ndifficulty: easy\n${line}\n`,
      });
      expect(await failureOf(async () => harbor.parse(row))).toMatchObject({
        code: "invalid_field",
        field: "instance.task_yaml",
        message: expect.stringContaining(why),
      });
    });
  }
});

test("pytest's summary is read as Terminal-Bench reads it, and a test with two results has the worse", () => {
  const log = `FAILED before the summary::test_x
=== short test summary info ===
PASSED tests/test_a.py::test_one
SKIPPED [1] tests/test_a.py:4: no reason
XFAIL tests/test_a.py::test_two - known
XPASS tests/test_a.py::test_three
FAILED tests/test_a.py::test_one - assert 1 - 2
ERROR tests/test_b.py - ImportError
=== 1 passed in 0.1s ===
`;
  expect(pytestResults(log)).toEqual({
    test_one: "failed",
    "[1] tests/test_a.py:4: no reason": "passed",
    test_two: "passed",
    test_three: "failed",
    "tests/test_b.py": "failed",
  });
  expect(pytestResults("no summary")).toBeNull();
  expect(pytestResults("= short test summary info =\n1 passed")).toBeNull();
});
