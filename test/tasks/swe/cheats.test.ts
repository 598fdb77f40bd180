import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Bundle, setup } from "../../sandbox/setup.ts";
import { failureOf } from "../../support/failure.ts";
import { CHEATS, type Cheat } from "./cheats.ts";
import { evaluate, rollOut } from "./setup.ts";
import { SOLVE, scriptRow, type Tally, tallyImage, unittestRow } from "./tally.ts";

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

const ROWS = { unittest: unittestRow, script: scriptRow };

/** With a change that does nothing, so that EVAL has something to run. */
async function verdictOf({ script, runner }: Pick<Cheat, "script" | "runner">) {
  const row = runner === undefined ? tally.row : ROWS[runner](tally.row);
  const note = "printf '\\n# noted\\n' >>/testbed/README.md";
  const outcome = await rollOut(bundle, row, `cd /testbed\n${note}\n${script}`);
  return await evaluate(bundle, row, outcome, "keep");
}

test.each([undefined, "unittest", "script"] as const)(
  "an honest solution earns the reward, so that nothing here is lost by other means (%s)",
  async (runner) => {
    const verdict = await verdictOf({ script: SOLVE, ...(runner && { runner }) });
    expect(verdict).toMatchObject({ reward: 1, rule: "tests_passed" });
  },
);

const PATCHED = `printf 'import gc\\ngc.get_objects()\\n' >>tally/sums.py`;

test("an honest solution has nothing that is suspicious, and its copies leave little to luck", async () => {
  const { details = {} } = await verdictOf({ script: SOLVE });
  const evidence = { exit_code: true, reading: true, own_tests: 0 };
  expect(details).toMatchObject({ evidence });
  expect(details.suspicions).toBeUndefined();
  expect((details.evidence as { luck: number }).luck).toBeLessThan(0.1);
});

test("a suspicious change that passes its tests earns what the setting says", async () => {
  const outcome = await rollOut(bundle, tally.row, `${SOLVE}\n${PATCHED}`);
  const kept = await evaluate(bundle, tally.row, outcome, "keep");
  const suspicions = expect.arrayContaining([
    { path: "tally/sums.py", line: 16, kind: "interpreter", token: "gc" },
  ]);
  expect(kept).toMatchObject({ reward: 1, rule: "tests_passed", details: { suspicions } });
  const zero = await evaluate(bundle, tally.row, outcome, "zero");
  expect(zero).toMatchObject({ reward: 0, rule: "suspicious", details: { suspicions } });
  expect(await failureOf(() => evaluate(bundle, tally.row, outcome, "null"))).toMatchObject({
    ...{ code: "verdict_suspicious", boundary: "policy" },
  });
});

describe("no reward for", () => {
  test.each(CHEATS.map((cheat) => [cheat.name, cheat] as const))(
    "P15: %s",
    async (_name, cheat) => {
      // Kept, so that what luck gets through the copies is seen by the reading of its lines.
      const { reward, details } = await verdictOf(cheat);
      expect(reward === 0 || details?.suspicions !== undefined).toBe(true);
    },
  );
});
