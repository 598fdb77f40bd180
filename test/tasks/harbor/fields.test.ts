import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { harbor } from "../../../src/tasks/harbor/harbor.ts";
import { type Bundle, setup } from "../../sandbox/setup.ts";
import { failureOf } from "../../support/failure.ts";
import { TASK_SETTINGS } from "../../support/task-context.ts";
import { type Folder, type Player, play, rowOf } from "./task-folder.ts";

let bundle: Bundle;

beforeAll(async () => {
  bundle = await setup("bubblewrap");
});

afterAll(() => bundle[Symbol.asyncDispose]());

/** A test.sh whose reward is 1 where `condition` holds. */
function testing(condition: string): Folder {
  const reward = "/logs/verifier/reward.txt";
  return {
    "tests/test.sh": `#!/bin/bash\nif ${condition}; then echo 1 >${reward}; else echo 0 >${reward}; fi\n`,
  };
}

/** A value of the service's own, as a task asks for it. */
const asked = (name: string) => `$\{${name}}`;

/** The reward of a task with this `task.toml`, and the verdict around it. */
async function verdictOf(toml: string, changes: Folder, player?: Player) {
  return await play(bundle, await rowOf({ ...changes, "task.toml": toml }), player);
}

describe("a field of task.toml is honoured:", () => {
  test("environment.env in the agent's commands, the solution and the tests", async () => {
    const toml = `[environment]\nenv = { PLACE = "here", LATER = "${asked("NOT_SET:-then")}" }\n`;
    const changes = {
      "solution/solve.sh": '#!/bin/bash\necho "$PLACE $LATER" >greeting.txt\n',
      ...testing('[ "$(cat greeting.txt) $PLACE" = "here then here" ]'),
    };
    expect((await verdictOf(toml, changes)).reward).toBe(1);
    const agent = ['echo "$PLACE $LATER" >greeting.txt'];
    expect((await verdictOf(toml, changes, { agent })).reward).toBe(1);
  });

  test("solution.env for solve.sh alone", async () => {
    const toml = '[solution.env]\nHINT = "x"\n';
    const changes = {
      "solution/solve.sh": '#!/bin/bash\necho "$HINT" >greeting.txt\n',
      ...testing('[ "$(cat greeting.txt)$HINT" = x ]'),
    };
    expect((await verdictOf(toml, changes)).reward).toBe(1);
  });

  test("verifier.env, with the service's own variables where the operator lists them", async () => {
    process.env.ROLLOUTD_TEST_WORD = "open sesame";
    const toml = `[verifier.env]\nWORD = "${asked("ROLLOUTD_TEST_WORD")}"\nOTHER = "${asked("HOME:-none")}"\n`;
    const changes = testing('[ "$WORD $OTHER" = "open sesame none" ]');
    const settings = { envs: ["ROLLOUTD_TEST_WORD"] };
    expect((await verdictOf(toml, changes, { settings })).reward).toBe(1);
    const instance = harbor.parse(await rowOf({ "task.toml": toml }));
    expect(await failureOf(async () => harbor.sandboxes(instance, TASK_SETTINGS))).toMatchObject({
      code: "invalid_field",
      message:
        "verifier.env.WORD asks for the variable ROLLOUTD_TEST_WORD, which tasks may not have",
      mend: "start the service with ROLLOUTD_TEST_WORD set and with --task-envs ROLLOUTD_TEST_WORD",
    });
    delete process.env.ROLLOUTD_TEST_WORD;
  });

  test("agent.timeout_sec bounds the solution, and the verifier's limit does not", async () => {
    const changes = { "solution/solve.sh": "#!/bin/bash\nsleep 30\n" };
    const toml = "[agent]\ntimeout_sec = 0.3\n[verifier]\ntimeout_sec = 600\n";
    expect(await failureOf(() => verdictOf(toml, changes))).toMatchObject({
      code: "instance_invalid",
      message: "the task's solve.sh took longer than the 300 ms that its agent has",
    });
  });

  test("the folders for logs and artifacts are there from the start", async () => {
    const agent = [
      "echo a >/logs/agent/a && echo b >/logs/artifacts/b && echo hello >greeting.txt",
    ];
    const changes = testing("[ -e /logs/agent/a ] && [ -e /logs/artifacts/b ]");
    expect((await verdictOf("", changes, { agent })).reward).toBe(1);
  });

  test("environment.healthcheck is asked until it is well, and fails the task where it never is", async () => {
    const toml = (retries: number) =>
      `[environment.healthcheck]\ncommand = "echo x >>/tmp/asked; [ $(wc -l </tmp/asked) = 3 ]"\nretries = ${retries}\ninterval_sec = 0\n`;
    expect((await verdictOf(toml(3), testing("[ $(wc -l </tmp/asked) = 3 ]"))).reward).toBe(1);
    expect(await failureOf(() => verdictOf(toml(2), {}))).toMatchObject({
      code: "instance_invalid",
      message: expect.stringContaining("the task's healthcheck failed 2 times: echo x"),
    });
  });

  test("several rewards are all in the verdict, and the main one is named", async () => {
    const json = `echo '{"reward": 0.5, "style": 3, "passed": true}' >/logs/verifier/reward.json; echo 1 >/logs/verifier/reward.txt`;
    const verdict = await verdictOf("", { "tests/test.sh": `#!/bin/bash\n${json}\n` });
    expect(verdict).toMatchObject({
      reward: 0.5,
      rule: "harbor_reward",
      reason: "The task's test.sh gave 0.5 (style 3, passed 1).",
      details: { main: "reward", rewards: { reward: 0.5, style: 3, passed: 1 } },
    });
  });

  test("test.sh is run by the interpreter that it names", async () => {
    const script = "#!/usr/bin/env python3\nopen('/logs/verifier/reward.txt', 'w').write('0.75')\n";
    expect((await verdictOf("", { "tests/test.sh": script })).reward).toBe(0.75);
  });

  test("memory and storage bound the sandbox", async () => {
    const limitsOf = async (toml: string) =>
      harbor.sandboxes(harbor.parse(await rowOf({ "task.toml": toml })), TASK_SETTINGS).limits;
    expect(await limitsOf("[environment]\nmemory_mb = 512\nstorage_mb = 100\n")).toEqual({
      memoryBytes: 512 * 1024 ** 2,
      diskBytes: 100 * 1024 ** 2,
    });
    expect(await limitsOf('[environment]\nmemory = "2G"\nstorage = "512M"\n')).toEqual({
      memoryBytes: 2 * 1024 ** 3,
      diskBytes: 512 * 1024 ** 2,
    });
  });
});

describe("a separate verifier", () => {
  const SEPARATE = `artifacts = [{ source = "/app/out", exclude = ["*.log", "cache"] }, "/app/one.txt"]
[environment]
env = { SIDE = "agent" }
[verifier.environment]
env = { SIDE = "verifier" }
[[verifier.collect]]
command = "mkdir -p out && echo collected >out/state"
`;
  const LOOK = testing(
    '[ "$(cd / && find app logs/artifacts -type f | sort | xargs)" = "app/one.txt app/out/deep/kept app/out/state logs/artifacts/published" ] && [ "$SIDE" = verifier ]',
  );
  const WORK =
    "mkdir -p out/deep out/cache && touch one.txt other.txt out/x.log out/deep/y.log out/deep/kept out/cache/z && echo >/logs/artifacts/published";

  test("gets the artifacts, less what they exclude, and the conventional folder, in an environment of its own", async () => {
    expect(await verdictOf(SEPARATE, LOOK, { agent: [WORK] })).toMatchObject({ reward: 1 });
    expect(await verdictOf(SEPARATE, LOOK, { agent: ["touch other.txt"] })).toMatchObject({
      reward: 0,
    });
  });

  test("has the image that its environment names", async () => {
    const toml =
      '[environment]\ndocker_image = "a/agent:1"\n[verifier.environment]\ndocker_image = "a/judge:2"\n';
    const instance = harbor.parse(await rowOf({ "task.toml": toml }));
    expect(harbor.sandboxes(instance, TASK_SETTINGS)).toMatchObject({
      evaluation: "fresh",
      image: "docker://a/agent:1",
      evaluationImage: "docker://a/judge:2",
    });
  });
});

describe("refused by the field's name, because no sandbox has it:", () => {
  const REFUSED: [string, string, string][] = [
    ["a GPU", "[environment]\ngpus = 1\n", "environment.gpus"],
    ["a TPU", "[environment.tpu]\ntype = 'v5'\ntopology = '2x2'\n", "environment.tpu"],
    ["Windows", "[environment]\nos = 'Windows'\n", "environment.os"],
    ["tool servers", "[[environment.mcp_servers]]\nname = 'x'\n", "environment.mcp_servers"],
    ["another user for the agent", "[agent]\nuser = 'nobody'\n", "agent.user"],
    ["another user for the verifier", "[verifier]\nuser = 1000\n", "verifier.user"],
    ["an artifact of a sidecar", '[[artifacts]]\nsource = "/x"\nservice = "db"\n', "artifacts"],
    ["a way out", 'artifacts = ["/app/../etc"]\n', "artifacts"],
  ];
  for (const [what, toml, field] of REFUSED) {
    test(what, async () => {
      const row = await rowOf({ "task.toml": toml });
      expect(await failureOf(async () => harbor.parse(row))).toMatchObject({
        code: "invalid_field",
        field: "instance.task_toml",
        message: expect.stringContaining(`asks for ${field}`),
      });
    });
  }

  test("several containers", async () => {
    const compose = "services:\n  main:\n    image: x\n  db:\n    image: postgres\n";
    const row = await rowOf({ "environment/docker-compose.yaml": compose });
    expect(await failureOf(async () => harbor.parse(row))).toMatchObject({
      code: "invalid_field",
      field: "instance.compose",
      message: "instance.compose starts 2 containers (main, db), and a rollout has one sandbox",
    });
    const one = { "environment/docker-compose.yaml": "services:\n  main:\n    image: x\n" };
    expect(harbor.parse(await rowOf(one)).steps).toHaveLength(1);
  });

  for (const [table, line] of [
    ["environment", 'network_mode = "public"'],
    ["verifier", 'network_mode = "public"'],
    ["agent", 'network_mode = "allowlist"\nallowed_hosts = ["a.example"]'],
  ] as const) {
    test(`a network (${table}: ${line.split("\n")[0]}), unless the operator says otherwise`, async () => {
      const instance = harbor.parse(await rowOf({ "task.toml": `[${table}]\n${line}\n` }));
      expect(await failureOf(async () => harbor.sandboxes(instance, TASK_SETTINGS))).toMatchObject({
        code: "invalid_field",
        field: "instance",
        mend: expect.stringContaining("--task-network without"),
      });
      const without = { ...TASK_SETTINGS, network: "without" as const };
      expect(harbor.sandboxes(instance, without)).toMatchObject({ agent: true });
    });
  }
});

describe("tests that fetch their runner, without which they give 0 to every answer,", () => {
  const networkOf = async (line: string) =>
    harbor.parse(await rowOf({ "tests/test.sh": `#!/bin/bash\n# curl https://x\n${line}\n` }))
      .network;

  test.each([
    "apt-get update && apt-get install -y curl",
    "apt-get -qq -y install curl",
    "curl -LsSf https://a.example/uv/install.sh | sh",
    "  uvx --with pytest pytest /tests",
    "uv run pytest /tests/test_it.py",
    "python3 -m pip install pytest",
    "cd x && git clone https://a.example/b",
    "npm install",
  ])("are refused for %s", async (line) => {
    expect(await networkOf(line)).toBe(`test.sh: ${line.trim()}`);
  });

  test.each([
    "pytest /tests/test_outputs.py -rA",
    "pip install --no-index --find-links /wheels x",
    "curl -s localhost:8080/health",
    "uv run --offline pytest",
    "echo installing",
    "python3 /tests/installer.py",
  ])("and those that run what is there are taken: %s", async (line) => {
    expect(await networkOf(line)).toBeNull();
  });
});

test("users that a sandbox has are no reason to refuse a task", async () => {
  const row = await rowOf({ "task.toml": '[agent]\nuser = "root"\n[verifier]\nuser = 0\n' });
  expect(harbor.parse(row).warnings).toEqual([]);
});

test("keys that nobody reads are warnings, also in the verdict", async () => {
  const toml =
    "[agent]\ntimeout = 3\n[nothing]\nat = 'all'\n[environment]\ncpus = 9999\nallow_internet = true\n";
  const verdict = await verdictOf(toml, {});
  expect(verdict.reward).toBe(1);
  expect(verdict.details?.warnings).toEqual([
    "task.toml: nothing reads agent.timeout",
    "task.toml: nothing reads nothing",
    "task.toml: environment.allow_internet: a sandbox has no network",
    expect.stringMatching(/^task.toml: environment.cpus is 9999, and the node has \d+$/),
  ]);
});

test("a Dockerfile asks for an image of the task's own, and the service's default is none", async () => {
  const changes = {
    "environment/Dockerfile": "FROM debian\nRUN apt-get install x\nWORKDIR /srv\n",
  };
  const instance = harbor.parse(await rowOf(changes));
  expect(instance.workdir).toBe("/srv");
  expect(harbor.sandboxes(instance, TASK_SETTINGS)).toMatchObject({
    image: null,
    ownImage: { mend: expect.stringContaining("--task-images harbor=IMAGE") },
  });
  const images = { harbor: "/images/{name}.sif" };
  expect(harbor.sandboxes(instance, { ...TASK_SETTINGS, images }).image).toBe("/images/.sif");
});
