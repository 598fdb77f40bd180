import { describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import type { Span } from "../../src/cli/file-spans.ts";
import { type MadeWith, madeWith } from "../../src/cli/made-with.ts";
import { readPastResults } from "../../src/cli/past-results.ts";
import { ResultFile } from "../../src/cli/result-file.ts";
import { placeOf, requireSameModel, resume } from "../../src/cli/resume.ts";
import { type PlannedRollout, planRollouts, termsOf } from "../../src/cli/run-collect.ts";
import type { RolloutView } from "../../src/protocol/view.ts";
import { randomFrom } from "../support/random.ts";
import { tempDir } from "../support/temp-dir.ts";
import { usageOf } from "./usage.ts";
import { failedView, viewOf } from "./views.ts";

const UNSET = { maxTurns: undefined, runLimitMs: undefined, image: undefined };
const PLAN = { prefix: "new", samples: 2, seed: 0, sampling: {}, ...UNSET };
const TERMS = madeWith(termsOf(PLAN, "/rows.jsonl"), null);
const TRAJECTORY = { version: 1, messages: [] };
/** JSON does not escape it, and some readers take it for the end of a line. */
const SEPARATOR = "\u2028";

const rowsOf = (names: string[]) =>
  names.map((name) => ({ row: { data_source: "echo", name }, place: `rows.jsonl ${name}` }));

function lineOf(
  { row, sample, request }: PlannedRollout,
  view: RolloutView,
  made_with: MadeWith = TERMS,
): string {
  const { instance } = request;
  return `${JSON.stringify({ row, sample, ...view, made_with, instance, trajectory: TRAJECTORY })}\n`;
}

const planOf = (names: string[], samples = 2) =>
  planRollouts(rowsOf(names), { ...PLAN, samples }) as [PlannedRollout, ...PlannedRollout[]];
const overdue = (id: string) => {
  const late = failedView(id);
  const error = { ...late.error, code: "deadline_exceeded", boundary: "policy" };
  return { ...late, error } as RolloutView;
};

/** A run that goes on with the file: with what stood when it began, and what is left to run. */
function goOn(path: string, names: string[], { samples = 2, terms = TERMS } = {}) {
  const file = new ResultFile(path, {
    mode: "resume",
    input: "/rows.jsonl",
    resumable: true,
    echo: false,
  });
  try {
    const past = readPastResults(path, file.fd);
    const planned = planOf(names, samples);
    const resumed = resume(path, past, planned, { rows: rowsOf(names), terms });
    return { file, past, ...resumed, [Symbol.dispose]: () => file[Symbol.dispose]() };
  } catch (error) {
    file[Symbol.dispose]();
    throw error;
  }
}

describe("a run that goes on with a file of results", () => {
  test("keeps what has a reward or failed by the policy, and runs everything else again", () => {
    using dir = tempDir();
    const path = dir.file("r.jsonl");
    const [first, second, third, fourth] = planOf(["a", "b"]) as [
      ...[PlannedRollout, PlannedRollout, PlannedRollout, PlannedRollout],
    ];
    const good = lineOf(first, viewOf(`old-1${SEPARATOR}`));
    const bad = lineOf(second, overdue("old-2"));
    const broken = lineOf(third, failedView("old-3"));
    const torn = lineOf(fourth, viewOf("old-4")).slice(0, 40);
    writeFileSync(path, good + bad + broken + good + torn);
    using run = goOn(path, ["a", "b"]);
    expect(run.kept.map(({ id }) => id)).toEqual([`old-1${SEPARATOR}`, "old-2"]);
    expect(run.kept.some((result) => "trajectory" in result)).toBe(false);
    expect(run.rest.map(({ request }) => request.id)).toEqual(["new-1-0", "new-1-1"]);
    expect(run.past.isTorn).toBe(true);
    run.file.begin({ bytes: run.past.bytes, lines: 4 });
    expect(readFileSync(path, "utf8")).toBe(good + bad + broken + good);
    run.file.finish(run.replaced.get("1-0"));
    expect(readFileSync(path, "utf8")).toBe(good + bad + good);
  });

  test.each([
    ["another row in its place", ["a", "c"], "another row 1 than rows.jsonl c (name)"],
    ["the rows in another order", ["b", "a"], "another row 0 than rows.jsonl b (name)"],
    ["a row left out", ["b"], "another row 0 than rows.jsonl b (name)"],
  ])("refuses %s, and leaves the file as it is", (_what, names, why) => {
    using dir = tempDir();
    const text = planOf(["a", "b"])
      .map((one) => lineOf(one, viewOf("old")))
      .join("");
    writeFileSync(dir.file("r"), text);
    expect(usageOf(() => goOn(dir.file("r"), names))).toContain(why);
    expect(readFileSync(dir.file("r"), "utf8")).toBe(text);
  });

  test.each([
    ["temperature", { temperature: 1 }],
    ["top_p", { top_p: 0.5 }],
    ["max_tokens", { max_tokens: 5 }],
    ["seed", { seed: 4 }],
    ["max_turns", { max_turns: 3 }],
    ["run_limit_ms", { run_limit_ms: 1 }],
    ["image", { image: "other" }],
    ["golden", { golden: true }],
    ["agent_stuck", { agent_stuck: "off" }],
  ])("refuses another %s by its name, whichever side has it", (name, other) => {
    using dir = tempDir();
    const [first] = planOf(["a"]);
    const changed = { ...TERMS, ...other };
    for (const [past, now] of [
      [TERMS, changed],
      [changed, TERMS],
    ]) {
      const text = lineOf(first, viewOf("old"), past);
      writeFileSync(dir.file("r"), text);
      expect(usageOf(() => goOn(dir.file("r"), ["a"], { terms: now as never }))).toMatch(
        new RegExp(`line 1 of --resume .* was made with (no )?${name}.*the same ${name} as before`),
      );
      expect(readFileSync(dir.file("r"), "utf8")).toBe(text);
    }
  });

  test("with the prefix of the run before begins other rollouts, not those that broke", () => {
    using dir = tempDir();
    const [first, second] = planOf(["a"]) as [PlannedRollout, PlannedRollout];
    const broken = (id: string) => lineOf(first, failedView(id));
    writeFileSync(dir.file("r"), broken("new-0-0") + broken("new-0-0.2"));
    using run = goOn(dir.file("r"), ["a"]);
    expect(run.rest.map(({ request }) => request.id)).toEqual(["new-0-0.3", second.request.id]);
  });

  test("refuses another model, and takes one that nobody knows", () => {
    using dir = tempDir();
    const [first] = planOf(["a"]);
    writeFileSync(dir.file("r"), lineOf(first, viewOf("old"), { ...TERMS, model: "m" }));
    using run = goOn(dir.file("r"), ["a"]);
    requireSameModel("r", run.past, TERMS);
    requireSameModel("r", run.past, { ...TERMS, model: "m" });
    expect(usageOf(() => requireSameModel("r", run.past, { ...TERMS, model: "n" }))).toContain(
      'was made with model "m", and this run has model "n"',
    );
  });

  test.each([
    ["rows", '{"data_source": "echo"}\n'],
    ["groups", '{"id": "g", "rewards": [1, 0]}\n'],
    ["a program", "#!/bin/sh\nexit 1\n"],
    ["a damaged line between others", "half\n"],
    ["bytes", "\x00\x01\x02 not zeros\n"],
    ["a text without an end", "nothing of ours"],
  ])("refuses a file with %s, names the line, and leaves it as it is", (_what, text) => {
    using dir = tempDir();
    const good = lineOf(planOf(["a"])[0], viewOf("old"));
    writeFileSync(dir.file("r"), good + text);
    expect(usageOf(() => goOn(dir.file("r"), ["a"]))).toContain("line 2 is no result of a run");
    expect(readFileSync(dir.file("r"), "utf8")).toBe(good + text);
  });

  test("takes a last line without its newline for whole where it is", async () => {
    using dir = tempDir();
    const [first, second] = planOf(["a"]) as [PlannedRollout, PlannedRollout];
    const [one, two] = [lineOf(first, viewOf("1")), lineOf(second, viewOf("2"))];
    writeFileSync(dir.file("r"), one.trimEnd());
    using run = goOn(dir.file("r"), ["a"]);
    expect([run.past.isTorn, run.kept.length]).toEqual([false, 1]);
    run.file.begin({ bytes: run.past.bytes, lines: 1 });
    await run.file.add(JSON.parse(two));
    expect(readFileSync(dir.file("r"), "utf8")).toBe(one + two);
  });
});

const SEEDS = Number(process.env.ROLLOUTD_TEST_RESUMES ?? 50);
const FIRST_SEED = Number(process.env.ROLLOUTD_TEST_SEED ?? 1);

/** Runs of a random part of five rows, one after the other on one file: each is broken off somewhere, some by a kill. */
async function story(seed: number): Promise<void> {
  using dir = tempDir();
  const random = randomFrom(seed);
  const below = (limit: number) => Math.floor(random() * limit);
  const path = dir.file("r");
  const all = ["a", "b", "b", "c", "d"];
  const won = new Map<string, string>();
  writeFileSync(path, "");
  for (let attempt = 0; attempt < 6; attempt++) {
    const names = all.slice(0, 1 + below(all.length));
    const samples = 1 + below(3);
    using run = goOn(path, names, { samples });
    const { past, rest, kept, replaced, file } = run;
    expect(kept.length + rest.length).toBe(names.length * samples);
    file.begin({ bytes: past.bytes, lines: past.results.length });
    const superseded: Span[] = [];
    const done = below(rest.length + 1);
    for (const rollout of rest.slice(0, done)) {
      const id = `${seed}-${attempt}-${placeOf(rollout)}`;
      const wins = random() < 0.6;
      const line = lineOf(rollout, wins ? viewOf(id) : failedView(id));
      await file.add(JSON.parse(line));
      superseded.push(...(replaced.get(placeOf(rollout)) ?? []));
      if (wins) won.set(placeOf(rollout), id);
    }
    if (done === rest.length) file.finish(superseded);
    else if (random() < 0.5) {
      const begun = lineOf(planOf(names)[0], viewOf("torn"));
      const cut = readFileSync(path, "utf8") + begun.slice(0, below(begun.length - 1));
      writeFileSync(path, random() < 0.3 ? `${cut}\0\0\0` : cut);
    }
  }
  using run = goOn(path, all, { samples: 3 });
  const standing = run.past.results.filter(({ ended }) => ended.reward !== null);
  const found = standing.map(({ ended }) => [placeOf(ended), ended.id]);
  expect(found.toSorted()).toEqual([...won].toSorted());
}

test(`no result is lost or doubled, however runs are broken off and gone on with (${SEEDS} seeds)`, async () => {
  for (let seed = FIRST_SEED; seed < FIRST_SEED + SEEDS; seed++) {
    await story(seed).catch((error) => {
      throw new Error(`ROLLOUTD_TEST_SEED=${seed}`, { cause: error });
    });
  }
});
