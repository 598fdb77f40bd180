import { afterAll, beforeAll, expect, test } from "bun:test";
import { environment, run, simulate, turn } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { SOLUTION, SOLVE, type Tally, tallyImage } from "../tasks/swe/tally.ts";

let tally: Tally;

beforeAll(async () => {
  tally = await tallyImage();
});

afterAll(() => tally[Symbol.asyncDispose]());

async function runRaw(rows: object[], flags: string[]) {
  using dir = tempDir();
  const file = dir.file("rows.jsonl");
  await Bun.write(file, rows.map((row) => `${JSON.stringify(row)}\n`).join(""));
  const own = ["--apptainer", environment("ROLLOUTD_APPTAINER"), "--out", dir.file("out")];
  return await run(["run", file, ...own, ...flags]);
}

/** The result lines of `rolloutd run` on these rows, in the rows' order, with the exit code. */
async function runRows(rows: object[], flags: string[]) {
  const { stdout, stderr, exitCode } = await runRaw(rows, ["--json", ...flags]);
  const results = stdout
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line))
    .toSorted((a, b) => a.row - b.row || a.sample - b.sample);
  if (results.length === 0) throw new Error(stderr);
  return { exitCode, results };
}

test("--golden says which rows earn 1 by their own solution and 0 without any", async () => {
  const broken = { ...tally.row, patch: SOLUTION.replace("/ 2\n", "/ 3\n") };
  const { exitCode, results } = await runRows([tally.row, broken], ["--golden"]);
  expect(results.map(({ reward, verdict }) => [reward, verdict.rule])).toEqual([
    [1, "tests_passed"],
    [0, "empty_patch"],
    [1, "tests_passed"],
    [0, "tests_failed"],
    [0, "empty_patch"],
    [0, "tests_failed"],
  ]);
  expect(results[3].verdict.details.log).toContain("test_median_of_two");
  expect(exitCode).toBe(1);
  const fitting = await runRows([tally.row], ["--golden"]);
  expect(fitting.exitCode).toBe(0);
});

test("--golden prints the end of the log of what did not come out as it has to", async () => {
  const broken = { ...tally.row, patch: SOLUTION.replace("/ 2\n", "/ 3\n") };
  const { stdout } = await runRaw([broken], ["--golden"]);
  expect(stdout).toMatch(
    /row 0, the row's own solution by way of the agent's sandbox: 0, tests_failed/,
  );
  expect(stdout).toContain("FAILED tests/test_sums.py::test_median_of_even_count");
});

test("--image is the image of rows that name their own as well", async () => {
  const elsewhere = { ...tally.row, image: "docker://registry.example/no/such:image" };
  const { results } = await runRows([elsewhere], ["--golden", "--image", tally.image]);
  expect(results.map(({ reward }) => reward)).toEqual([1, 0, 1]);
});

test("an agent that solves the issue earns 1, and one that doesn't earns 0", async () => {
  using dir = tempDir();
  const bash = (command: string) => turn("execute_bash", { command });
  const solve = [
    bash("pwd && git log --oneline"),
    bash(`{\n${SOLVE}\n}`),
    turn("finish", { message: "Done." }),
  ];
  const idle = [bash("sed -i 's/2]/3]/' tally/sums.py"), turn("finish", { message: "Done." })];
  await using engine = await simulate(dir.path, [
    { match: "gives 2, and", variants: [solve] },
    { match: "is wrong", variants: [idle] },
  ]);
  const rows = [tally.row, { ...tally.row, problem_statement: "The median is wrong." }];
  const { exitCode, results } = await runRows(rows, ["--backend", engine.url]);
  expect(results.map(({ reward, verdict }) => [reward, verdict?.rule])).toEqual([
    [1, "tests_passed"],
    [0, "tests_failed"],
  ]);
  const observed = results[0].trajectory.messages.find(
    ({ role }: { role: string }) => role === "tool",
  );
  expect(observed.content).toMatch(/^\/testbed\n\w+ \(grafted, HEAD -> main\) Add medians\n/);
  expect(exitCode).toBe(0);
});
