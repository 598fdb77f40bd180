import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { environment, run } from "../support/binary.ts";

/**
 * Rows of real repositories, as `scripts/swe-images` makes them from PyPI: two small ones, or those that the variable names,
 * with blanks between; `all` for all of them, which takes an hour.
 */
const CHOSEN =
  process.env.ROLLOUTD_TEST_SWE_ROWS ?? "andialbrecht__sqlparse-0.4.4 mahmoud__boltons-24.1.0";
const SCRIPT = resolve(import.meta.dir, "../../scripts/swe-images");
const LIMIT_MS = CHOSEN === "all" ? 7_200_000 : 300_000;

let folder: string;
let rows: string;

beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "rolloutd-rows-"));
  const names = CHOSEN === "all" ? [] : CHOSEN.split(" ");
  const made = Bun.spawnSync([SCRIPT, join(folder, "made"), ...names]);
  if (made.exitCode !== 0) throw new Error(made.stderr.toString());
  rows = made.stdout.toString().trim();
}, LIMIT_MS);

afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Rewards by row, of its solution, of nothing, and of its solution by way of an agent's sandbox. */
async function golden(file: string): Promise<number[][]> {
  const out = ["--out", `${file}.results`, "--json"];
  const own = ["--apptainer", environment("ROLLOUTD_APPTAINER"), "--image-dirs", folder];
  const { stdout, stderr } = await run(["run", file, "--golden", ...own, ...out]);
  const results: { row: number; sample: number; reward: number }[] = stdout
    .split("\n")
    .flatMap((line) => (line === "" ? [] : JSON.parse(line)));
  if (results.length === 0) throw new Error(stderr);
  const sorted = results.toSorted((a, b) => a.row - b.row || a.sample - b.sample);
  return [...Map.groupBy(sorted, ({ row }) => row).values()].map((group) =>
    group.map(({ reward }) => reward),
  );
}

test(
  "solutions of real repositories earn 1 both ways, and nothing earns 0",
  async () => {
    const count = readFileSync(rows, "utf8").trim().split("\n").length;
    expect(await golden(rows)).toEqual(Array(count).fill([1, 0, 1]));
  },
  LIMIT_MS,
);

test(
  "half of a solution earns 0, and so does one that is turned round",
  async () => {
    const { broken } = await import("../../scripts/swe-images.d/broken.ts");
    const file = join(folder, "broken.jsonl");
    const made = readFileSync(rows, "utf8")
      .trim()
      .split("\n")
      .flatMap((line) => broken(JSON.parse(line)));
    await Bun.write(file, made.map((row) => `${JSON.stringify(row)}\n`).join(""));
    const rewards = await golden(file);
    expect(rewards.map(([direct]) => direct)).toEqual(made.map(() => 0));
  },
  LIMIT_MS,
);
