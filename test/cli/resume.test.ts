import { expect, test } from "bun:test";
import { resume } from "../../src/cli/resume.ts";
import { type PlannedRollout, planRollouts } from "../../src/cli/run-collect.ts";
import type { RolloutView } from "../../src/protocol/view.ts";
import { failureOf } from "../support/failure.ts";
import { tempDir } from "../support/temp-dir.ts";
import { failedView, viewOf } from "./views.ts";

const UNSET = { maxTurns: undefined, runLimitMs: undefined, image: undefined };
const PLAN = { prefix: "new", samples: 2, seed: 0, sampling: {}, ...UNSET };
const ROWS = ["a", "b"].map((name) => ({ row: { data_source: "echo", name }, place: name }));
const PLANNED = planRollouts(ROWS, PLAN);
const TRAJECTORY = { version: 1, messages: [] };

const line = ({ row, sample, request }: PlannedRollout, view: RolloutView) =>
  JSON.stringify({ row, sample, ...view, instance: request.instance, trajectory: TRAJECTORY });
const idsOf = (planned: PlannedRollout[]) => planned.map(({ request }) => request.id);

test("what has a reward or failed by the policy stands, and everything else is run again", async () => {
  using dir = tempDir();
  const [first, second, third, fourth] = PLANNED as [
    PlannedRollout,
    PlannedRollout,
    PlannedRollout,
    PlannedRollout,
  ];
  const late = failedView("old-2");
  const overdue = {
    ...late,
    error: { ...late.error, code: "deadline_exceeded", boundary: "policy" },
  };
  const good = line(first, viewOf("old-1"));
  const bad = line(second, overdue as RolloutView);
  const broken = line(third, failedView("old-3"));
  const torn = line(fourth, viewOf("old-4")).slice(0, 40);
  await Bun.write(dir.file("r.jsonl"), [good, bad, broken, good, torn].join("\n"));
  const { kept, rest } = await resume(dir.file("r.jsonl"), PLANNED);
  expect(kept.map(({ id }) => id)).toEqual(["old-1", "old-2"]);
  expect(kept.some((result) => "trajectory" in result)).toBe(false);
  expect(idsOf(rest)).toEqual(["new-1-0", "new-1-1"]);
  expect(await Bun.file(dir.file("r.jsonl")).text()).toBe(`${good}\n${bad}\n`);
});

test("a result of another row in the same place does not stand", async () => {
  using dir = tempDir();
  const [first] = planRollouts([{ row: { data_source: "echo", name: "c" }, place: "c" }], PLAN);
  await Bun.write(dir.file("r.jsonl"), line(first as PlannedRollout, viewOf("old")));
  const { kept, rest } = await resume(dir.file("r.jsonl"), PLANNED);
  expect([kept, idsOf(rest)]).toEqual([[], idsOf(PLANNED)]);
});

test("a file that is not there is refused", async () => {
  const { code, message } = await failureOf(() => resume("/nonexistent/r.jsonl", PLANNED));
  expect([code, message]).toEqual([
    "invalid_field",
    "there is no file /nonexistent/r.jsonl to go on with",
  ]);
});
