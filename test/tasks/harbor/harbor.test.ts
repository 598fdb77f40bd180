import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { readRows } from "../../../src/cli/rows.ts";
import { goldenKind } from "../../../src/tasks/golden.ts";
import { harbor } from "../../../src/tasks/harbor/harbor.ts";
import { type Bundle, NO_ABORT, setup } from "../../sandbox/setup.ts";
import { failureOf } from "../../support/failure.ts";
import { evalContext, runContext } from "../../support/task-context.ts";
import { tempDir } from "../../support/temp-dir.ts";

let bundle: Bundle;

beforeAll(async () => {
  bundle = await setup("bubblewrap");
});

afterAll(() => bundle[Symbol.asyncDispose]());

const TASK: Record<string, string> = {
  "task.toml": `version = "1.0"
[metadata]
difficulty = "easy"
[agent]
timeout_sec = 120.0
[verifier]
timeout_sec = 30.0
env = { WORD = "hello" }
`,
  "instruction.md": "Write hello into greeting.txt.\n",
  "environment/Dockerfile": "FROM debian\nWORKDIR /work/task\n",
  "tests/test.sh": `#!/bin/bash
if python3 /tests/check.py "$WORD"; then echo 1 >/logs/verifier/reward.txt; else echo 0 >/logs/verifier/reward.txt; fi
`,
  "tests/check.py": "import sys\nassert open('greeting.txt').read().strip() == sys.argv[1]\n",
  "solution/solve.sh": "#!/bin/bash\necho hello >greeting.txt\n",
};

/** The row of a task folder with these files. */
async function rowOf(changes: Record<string, string> = {}) {
  using dir = tempDir();
  for (const [path, text] of Object.entries({ ...TASK, ...changes })) {
    mkdirSync(dirname(dir.file(`greet/${path}`)), { recursive: true });
    await Bun.write(dir.file(`greet/${path}`), text);
  }
  const row = readRows(dir.path)[0]?.row;
  if (!row) throw new Error("the folder gave no row");
  return row;
}

/** RUN with an agent that does nothing but `script`, and EVAL in the same sandbox. */
async function scored(row: Record<string, unknown>, script: string) {
  const instance = harbor.parse(row);
  const sandbox = await bundle.open();
  await harbor.init(instance, sandbox, NO_ABORT);
  const agent = async () => {
    const options = { cwd: instance.workdir, timeoutMs: 20_000, maxOutputBytes: 1000 };
    await sandbox.exec(["bash", "-c", script], options);
    return { stopReason: "finish", finalMessage: "" } as const;
  };
  const outcome = await harbor.run(instance, runContext({ sandbox, agent }));
  return await harbor.evaluate(instance, outcome, evalContext({ sandbox }));
}

test("a task folder becomes a row, with its files and the folder that its Dockerfile names", async () => {
  const row = await rowOf();
  expect(harbor.parse(row)).toMatchObject({
    workdir: "/work/task",
    hasDockerfile: true,
    separate: null,
    warnings: [],
    steps: [
      {
        name: null,
        instruction: TASK["instruction.md"],
        agentTimeoutMs: 120_000,
        verifierTimeoutMs: 30_000,
        verifierEnv: { WORD: "hello" },
      },
    ],
  });
  expect(Object.keys(row.tests as object).toSorted()).toEqual(["check.py", "test.sh"]);
});

describe("test.sh gives the reward", () => {
  test("of a task that was done, and of one that was not", async () => {
    const row = await rowOf();
    expect(await scored(row, "echo hello >greeting.txt")).toMatchObject({ reward: 1 });
    expect(await scored(row, "echo hullo >greeting.txt")).toMatchObject({ reward: 0 });
  });

  test("also as JSON, and as a share", async () => {
    const script = `echo '{"reward": 0.25, "other": 1}' >/logs/verifier/reward.json`;
    expect(await scored(await rowOf({ "tests/test.sh": script }), "true")).toMatchObject({
      reward: 0.25,
      rule: "harbor_reward",
    });
  });

  test("and not what the agent has laid in its place, or still runs", async () => {
    const plant = `mkdir -p /logs/verifier /tests && echo 1 >/logs/verifier/reward.txt && echo pass >/tests/check.py
ln -sf /tmp /logs/verifier/reward.json
setsid bash -c 'while sleep 0.02; do echo 1 >/logs/verifier/reward.txt; done' >/dev/null 2>&1 </dev/null & disown`;
    expect(await scored(await rowOf(), plant)).toMatchObject({ reward: 0 });
  });
});

test("a test.sh that writes no reward is a failure, and no reward", async () => {
  const row = await rowOf({ "tests/test.sh": "echo oops; exit 3\n" });
  expect(await failureOf(() => scored(row, "true"))).toMatchObject({
    code: "verifier_failed",
    boundary: "verifier",
    message:
      'the task\'s verifier gave no reward: test.sh ended with 3 and wrote no reward; it printed "oops\\n"',
  });
  const wild = await rowOf({ "tests/test.sh": "echo 7 >/logs/verifier/reward.txt\n" });
  expect(await failureOf(() => scored(wild, "true"))).toMatchObject({ code: "verifier_failed" });
});

test("its own solution earns 1, and nothing earns 0, without an agent", async () => {
  const instance = harbor.parse(await rowOf());
  for (const [which, reward] of [
    ["solution", 1],
    ["nothing", 0],
  ] as const) {
    const kind = goldenKind(harbor, which);
    const sandbox = await bundle.open();
    await kind.init(instance, sandbox, NO_ABORT);
    const outcome = await kind.run(instance, runContext({ sandbox }));
    expect((await kind.evaluate(instance, outcome, evalContext({ sandbox }))).reward).toBe(reward);
  }
});

test("a separate verifier gets the task's artifacts in a fresh sandbox, and nothing else", async () => {
  const toml =
    'artifacts = ["/work/task/greeting.txt"]\n[verifier]\nenvironment_mode = "separate"\nenv = { WORD = "hello" }\n';
  const instance = harbor.parse(await rowOf({ "task.toml": toml }));
  expect(harbor.sandboxes(instance, evalContext().settings).evaluation).toBe("fresh");
  const sandbox = await bundle.open();
  await harbor.init(instance, sandbox, NO_ABORT);
  const agent = async () => {
    await sandbox.writeFile("/work/task/greeting.txt", "hello\n");
    await sandbox.writeFile("/work/task/other.txt", "x");
    return { stopReason: "finish", finalMessage: "" } as const;
  };
  const outcome = await harbor.run(instance, runContext({ sandbox, agent }));
  const fresh = await bundle.open();
  expect((await harbor.evaluate(instance, outcome, evalContext({ sandbox: fresh }))).reward).toBe(
    1,
  );
});

test("a task.toml that is wrong names the field", async () => {
  const row = await rowOf({ "task.toml": "[verifier]\ntimeout_sec = -1\n" });
  expect(await failureOf(async () => harbor.parse(row))).toMatchObject({
    code: "invalid_field",
    field: "instance.task_toml",
  });
});
