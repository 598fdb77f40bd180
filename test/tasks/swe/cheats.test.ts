import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Bundle, setup } from "../../sandbox/setup.ts";
import { CHEATS } from "./cheats.ts";
import { evaluate, rollOut } from "./setup.ts";
import { SOLVE, type Tally, tallyImage } from "./tally.ts";

test("the documentation lists them", () => {
  const path = join(import.meta.dir, "../../../src/tasks/swe/README.md");
  const text = readFileSync(path, "utf8").split("## Cheats")[1] ?? "";
  const listed = text.split("\n").filter((line) => line.startsWith("- "));
  expect(listed).toEqual(CHEATS.map(({ name }) => `- ${name}`));
});

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

/** With a change that does nothing, so that EVAL has something to run. */
async function rewardOf(script: string) {
  const note = "printf '\\n# noted\\n' >>/testbed/README.md";
  const outcome = await rollOut(bundle, tally.row, `cd /testbed\n${note}\n${script}`);
  return await evaluate(bundle, tally.row, outcome);
}

test("an honest solution earns the reward, so that nothing here is lost by other means", async () => {
  expect(await rewardOf(SOLVE)).toMatchObject({ reward: 1, rule: "tests_passed" });
});

describe("no reward for", () => {
  test.each(CHEATS.map(({ name, script }) => [name, script] as const))(
    "P15: %s",
    async (_name, script) => {
      const verdict = await rewardOf(script);
      expect(verdict.reward).toBe(0);
    },
  );
});
