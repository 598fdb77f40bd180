import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { harbor } from "../../../src/tasks/harbor/harbor.ts";
import { type Bundle, setup } from "../../sandbox/setup.ts";
import { failureOf } from "../../support/failure.ts";
import { type Folder, play, rowOf } from "./task-folder.ts";

let bundle: Bundle;

beforeAll(async () => {
  bundle = await setup("bubblewrap");
});

afterAll(() => bundle[Symbol.asyncDispose]());

const GIVE = (condition: string, good = "1") =>
  `#!/bin/bash\nif ${condition}; then echo ${good} >/logs/verifier/reward.txt; else echo 0 >/logs/verifier/reward.txt; fi\n`;

function tomlOf(first = "", whole = ""): string {
  return `${whole}\n[[steps]]\nname = "one"\n${first}\n[[steps]]\nname = "two"\nverifier.env = { WORD = "two" }\n`;
}

const STEPS: Folder = {
  "task.toml": tomlOf(),
  "steps/one/instruction.md": "First.",
  "steps/one/tests/test.sh": GIVE("[ -e one ]"),
  "steps/one/solution/solve.sh": "#!/bin/bash\ntouch one\n",
  "steps/two/instruction.md": "Second.",
  "steps/two/tests/test.sh": GIVE(
    '[ "$(cat two)" = "$WORD $(cat given)" ] && [ -e /tests/shared ]',
    "0.5",
  ),
  "steps/two/solution/solve.sh": "#!/bin/bash\necho two laid >two\n",
  "steps/two/workdir/setup.sh": "echo laid >given\n",
  "tests/shared": "",
};

const rowOfSteps = (changes: Folder = {}) => rowOf(changes, STEPS);

describe("a task in steps", () => {
  test("goes on with the next step when the agent finishes one, and its reward is their mean", async () => {
    const prompts: string[] = [];
    const agent = ["touch one", "echo two $(cat given) >two"];
    const row = await rowOfSteps();
    const verdict = await play(bundle, row, { agent, onPrompt: (text) => prompts.push(text) });
    expect(prompts).toEqual(["First.", "The step is done. The next step of the task:\n\nSecond."]);
    expect(verdict).toMatchObject({
      reward: 0.75,
      rule: "harbor_steps_mean",
      details: { steps: [{ name: "one", rewards: { reward: 1 } }, { name: "two" }] },
    });
  });

  test("earns its rewards with its own solutions, and none with nothing", async () => {
    const row = await rowOfSteps();
    expect((await play(bundle, row)).reward).toBe(0.75);
    expect((await play(bundle, row, { agent: "nothing" })).reward).toBe(0);
  });

  test("has the last step's reward where it asks for that", async () => {
    const row = await rowOfSteps({
      "task.toml": tomlOf("", 'multi_step_reward_strategy = "final"'),
    });
    expect(await play(bundle, row)).toMatchObject({ reward: 0.5, rule: "harbor_steps_final" });
  });

  test("verifies the steps that the agent does not come to as they are", async () => {
    const verdict = await play(bundle, await rowOfSteps(), { agent: ["touch one"] });
    expect(verdict.reward).toBe(0.5);
  });

  test("ends where a step misses the least that it asks for", async () => {
    const row = await rowOfSteps({ "task.toml": tomlOf("min_reward = 0.5") });
    expect(await play(bundle, row, { agent: ["true", "echo two laid >two"] })).toMatchObject({
      reward: 0,
      reason: "1 of 2 steps were verified and gave 0. It ended there: reward is 0, below 0.5.",
    });
    const byName = await rowOfSteps({ "task.toml": tomlOf("min_reward = { style = 1 }") });
    expect((await play(bundle, byName)).details).toMatchObject({ steps: [{ name: "one" }] });
  });

  test("hides a step's tests and rewards from the next", async () => {
    const look =
      "ls /tests /logs/verifier >seen; ls /tests/shared /tests/test.sh >>seen 2>&1; touch one";
    const changes = {
      "steps/two/tests/test.sh": GIVE(
        "! grep -q reward.txt seen && ! grep -qx /tests/test.sh seen",
      ),
    };
    const verdict = await play(bundle, await rowOfSteps(changes), { agent: ["touch one", look] });
    expect(verdict.reward).toBe(1);
  });

  test("fails where a step's setup.sh does, because nobody could do it", async () => {
    const row = await rowOfSteps({ "steps/two/workdir/setup.sh": "echo no >&2; exit 4\n" });
    expect(await failureOf(() => play(bundle, row))).toMatchObject({
      code: "instance_invalid",
      message: 'setup.sh of step "two" ended with 4: no\n',
    });
  });
});

describe("refused:", () => {
  test("a step without a folder", async () => {
    const row = await rowOfSteps({ "task.toml": `${tomlOf()}[[steps]]\nname = "three"\n` });
    expect(await failureOf(async () => harbor.parse(row))).toMatchObject({
      field: "instance.steps",
      message: 'instance.steps lacks "three", which task.toml names',
    });
  });

  test("a step whose verifier is separate", async () => {
    const row = await rowOfSteps({
      "task.toml": tomlOf('verifier.environment_mode = "separate"'),
    });
    expect(await failureOf(async () => harbor.parse(row))).toMatchObject({
      field: "instance.task_toml",
    });
  });
});
