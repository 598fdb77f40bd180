import { expect, test } from "bun:test";
import { ApiClient } from "../../src/cli/api-client.ts";
import { Progress } from "../../src/cli/progress.ts";
import { collect, planRollouts, type RolloutResult } from "../../src/cli/run-collect.ts";
import type { RolloutView } from "../../src/protocol/view.ts";
import { tempDir } from "../support/temp-dir.ts";
import { failedView, viewOf } from "./views.ts";

const STAGES = {
  init: { pending: 0, active: 0 },
  run: { pending: 0, active: 0 },
  eval: { pending: 0, active: 0 },
};
const ROW = { data_source: "echo" };
const MADE_WITH = { seed: 0 };
const TRAJECTORY = { version: 1, messages: [] };

class QuietProgress extends Progress {
  readonly shown: [done: number, meanReward: number | null][] = [];

  override show(done: number, meanReward: number | null): void {
    this.shown.push([done, meanReward]);
  }
}

/** A server whose log of finished rollouts has the given pages, one per request. */
function setup(pages: RolloutView[][], trajectories: string[]) {
  const dir = tempDir();
  const cursors: (string | null)[] = [];
  const server = Bun.serve({
    unix: dir.file("s"),
    fetch(request) {
      const { pathname, searchParams } = new URL(request.url);
      if (pathname === "/v1/status") return Response.json({ stages: STAGES });
      if (pathname === "/v1/rollouts") {
        const rollouts = pages[cursors.length] ?? [];
        cursors.push(searchParams.get("after"));
        return Response.json({ rollouts, next: 100 + cursors.length });
      }
      const id = pathname.split("/")[3] ?? "";
      if (trajectories.includes(id)) return Response.json(TRAJECTORY);
      const error = { code: "not_found", message: "no", boundary: "client", retryable: false };
      return Response.json({ error }, { status: 404 });
    },
  });
  const client = new ApiClient(dir.file("s"));
  const plan = { prefix: "p", samples: 2, seed: 0, sampling: {} };
  const unset = { maxTurns: undefined, runLimitMs: undefined, image: undefined };
  const planned = planRollouts([{ row: ROW, place: "rows.jsonl:1" }], { ...plan, ...unset });
  const progress = new QuietProgress(planned.length);
  const kept: RolloutResult[] = [];
  const following = {
    progress,
    waits: { look: async () => {} },
    madeWith: MADE_WITH,
    keep: async (result: RolloutResult) => void kept.push(result),
  };
  return {
    kept,
    cursors,
    shown: progress.shown,
    collect: (submitted: RolloutView[]) => collect(client, planned, submitted, 7, following),
    async [Symbol.asyncDispose]() {
      await server.stop(true);
      dir[Symbol.dispose]();
    },
  };
}

const waiting = (id: string) => viewOf(id, { state: "pending", finished_at: null, reward: null });

test("results are followed page by page, kept as they end, and told in the order of the rows, others' left out", async () => {
  await using t = setup([[viewOf("other")], [failedView("p-0-1")], [viewOf("p-0-0")]], ["p-0-0"]);
  const first = { ...viewOf("p-0-0"), row: 0, sample: 0, made_with: MADE_WITH, instance: ROW };
  const second = { ...failedView("p-0-1"), row: 0, sample: 1, made_with: MADE_WITH, instance: ROW };
  expect(await t.collect([waiting("p-0-0"), waiting("p-0-1")])).toEqual([first, second]);
  expect(t.kept).toEqual([
    { ...second, trajectory: null },
    { ...first, trajectory: TRAJECTORY as never },
  ]);
  expect(t.cursors).toEqual(["7", "101", "102"]);
  expect(t.shown).toEqual([
    [0, null],
    [1, null],
    [2, 1],
  ]);
});

test("a rollout that had finished before it was submitted again is taken, and each is taken once", async () => {
  await using t = setup([[viewOf("p-0-1"), viewOf("p-0-1")]], []);
  const results = await t.collect([viewOf("p-0-0"), waiting("p-0-1")]);
  expect(results.map(({ id }) => id)).toEqual(["p-0-0", "p-0-1"]);
});
