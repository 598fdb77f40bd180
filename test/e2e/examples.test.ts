import { describe, expect, test } from "bun:test";
import { resolve } from "node:path";
import { BINARY, mathRow, run, serve, simulate } from "../support/binary.ts";
import { python } from "../support/python.ts";
import { tempDir } from "../support/temp-dir.ts";

const EXAMPLES = resolve(import.meta.dir, "../../scripts/examples");
const CHECKS = resolve(import.meta.dir, "../clients");
const STANDINS = resolve(CHECKS, "standins");

const right = { content: "It is \\boxed{42}." };
const wrong = { content: "It is \\boxed{5}." };
/** Of the variants a rollout gets the one that its seed points at, so both are in each group. */
const SCRIPTS = [
  { match: "six", variants: [[right], [wrong]] },
  { match: "two", variants: [[wrong]] },
];
const ROWS = [mathRow("What is seven times six?", "42"), mathRow("What is two plus two?", "4")].map(
  (row) => ({ ...row, data_source: "math" }),
);
/** The simulated engine has no answer to it, so that the rollout has no verdict. */
const BROKEN = mathRow("What is seven plus nine?", "16");

async function setup() {
  const dir = tempDir();
  const model = dir.file("model");
  const engine = await simulate(dir.path, SCRIPTS, ["--model-dir", model]);
  const service = await serve(dir.file("data"), ["--backend", engine.url, "--model-dir", model]);
  const { stdout } = await run(["client", "python"]);
  await Bun.write(dir.file("client/rolloutd.py"), stdout);
  return {
    socket: service.socket,
    /** What a script printed, line by line, having said `told` meanwhile. */
    async printed(script: string, args: string[], told: RegExp = /^$/): Promise<unknown[]> {
      const path = [dir.file("client"), EXAMPLES, STANDINS];
      const finished = await python([script, ...args], path);
      expect([finished.exitCode, finished.stderr]).toEqual([0, expect.stringMatching(told)]);
      const lines = finished.stdout.trim().split("\n");
      return lines.map((line) => JSON.parse(line));
    },
    rows: async (rows: object[]) => {
      const path = dir.file("rows.jsonl");
      await Bun.write(path, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
      return path;
    },
    async [Symbol.asyncDispose]() {
      await service[Symbol.asyncDispose]();
      await engine[Symbol.asyncDispose]();
      dir[Symbol.dispose]();
    },
  };
}

/** One turn and no sandbox, so that what is tested is the trainers' side. */
const reasoning = (row: object) => ({ ...row, data_source: "reasoning", verifier: "math" });

describe("the trainers' sides in scripts/examples, against the simulated engine", () => {
  test("the plain loop trains on groups with their advantages", async () => {
    await using t = await setup();
    const rows = await t.rows([...ROWS, BROKEN].map(reasoning));
    const size = ["--group-size", "2", "--rows-per-step", "3"];
    const told =
      /^step 0: 3 groups of 2 rollouts\n(step 0: group \d of 3: (rewards \[[01], [01]\]|.* no scripted policy .*)\n){3}$/;
    const args = [rows, "--server", t.socket, ...size];
    const [step] = await t.printed(`${EXAMPLES}/plain_loop.py`, args, told);
    expect(step).toMatchObject({ step: 0, mean: 0.25, broken: 1 });
  });

  test("a step of DAPO gets so many informative groups, and the next one goes on from it", async () => {
    await using t = await setup();
    const rows = await t.rows([...ROWS, ...ROWS].map(reasoning));
    const wanted = ["--groups", "1", "--group-size", "2", "--steps", "2"];
    const args = [rows, "--server", t.socket, ...wanted];
    const told = /^(step [01]: group 1 of 1: rewards \[[01], [01]\]\n){2}$/;
    const steps = await t.printed(`${EXAMPLES}/dapo_step.py`, args, told);
    expect(steps).toEqual([0, 1].map((step) => ({ step, groups: 1, tokens: expect.any(Number) })));
  });

  test("TRL's rollout function gives a rollout for each prompt, and none for what is broken", async () => {
    await using t = await setup();
    const rows = JSON.stringify([...ROWS, BROKEN].map(reasoning));
    const [{ rewards, masks, all_broken }] = (await t.printed(`${CHECKS}/trl_check.py`, [
      ...[t.socket, rows],
    ])) as [{ rewards: (number | null)[]; masks: number[][]; all_broken: boolean }];
    expect(rewards).toEqual([1, 0, 0, 0, null, null]);
    expect(
      masks
        .slice(0, 4)
        .flat()
        .every((value) => value === 1),
    ).toBe(true);
    expect(masks.slice(4)).toEqual([[0], [0]]);
    expect(all_broken).toBe(true);
  });

  test("verl's agent loop gives responses with their mask and reward, and fails where there is none", async () => {
    await using t = await setup();
    const rows = JSON.stringify([...ROWS, BROKEN].map(reasoning));
    const [output] = await t.printed(`${CHECKS}/verl_check.py`, [t.socket, rows]);
    expect(output).toEqual({
      ...{ rewards: [expect.any(Number), 0], turns: 2 },
      ...{ cut_mask: [0, 0, 0, 0], broken: true },
    });
  });
});

test("a cluster is sized by playing rollouts on engines of its kind", async () => {
  const child = Bun.spawn([`${EXAMPLES}/size_cluster.sh`, "2"], {
    env: {
      ...{ ...process.env, ROLLOUTD: BINARY, ROLLOUTS: "16", SPEED: "100" },
      ...{ TURNS: "3,0.3", TOKENS: "40,0.3", PROMPT_TOKENS: "500", PRESET: "qwen3-32b@h100x2" },
    },
    stdout: "pipe",
    stderr: "pipe",
  });
  const [told, problems] = await Promise.all([child.stdout.text(), child.stderr.text()]);
  expect([await child.exited, problems.match(/error/i)]).toEqual([0, null]);
  expect(told).toMatch(
    /^16 rollouts on 2 engines \(qwen3-32b@h100x2\): [\d.]+ minutes, [\d.]+ engine hours/,
  );
  expect(told).toMatch(/[5-9]\d\.\d % of the prompts' tokens were in the caches/);
});
