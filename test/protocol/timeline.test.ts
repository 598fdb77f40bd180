import { expect, test } from "bun:test";
import { errorBodyOf } from "../../src/errors.ts";
import { createJob } from "../../src/jobs/job.ts";
import { type JobEvent, transition } from "../../src/jobs/transitions.ts";
import { viewTimeline } from "../../src/protocol/timeline.ts";
import { Store } from "../../src/store/store.ts";
import type { Trajectory, Turn } from "../../src/trajectory/record.ts";
import { CANCEL, LIMITS, ROW, STARTED, SUCCEEDED, VERDICT } from "../support/jobs.ts";
import { tempDir } from "../support/temp-dir.ts";

const LOST: JobEvent = { type: "stage_failed", error: errorBodyOf("sandbox_died", "gone") };

/** The row of a job of time 1000 after events, each at its time. */
function rowAfter(...events: [atMs: number, JobEvent][]) {
  using dir = tempDir();
  using store = new Store(dir.path);
  let job = createJob({ id: "a", limits: LIMITS, numAttempts: 3 }, 1000);
  const seq = store.insertJob(job, ROW);
  for (const [atMs, event] of events) {
    const next = transition(job, event, atMs);
    store.updateJob(seq, job, next, next.state === "succeeded" ? { verdict: VERDICT } : {});
    job = next;
  }
  const row = store.jobById("a");
  if (!row) throw new Error("it was not stored");
  return row;
}

const TURN = {
  backend_id: "b1",
  started_ms: 10,
  engine_ms: 20.5,
  queue_ms: 3,
  first_token_ms: null,
  waited_ms: 4,
  tools: [
    { name: "think", status: "ok", message: 3, duration_ms: 1.5 },
    { name: "execute_bash", status: "timeout", message: 4, duration_ms: 8 },
  ],
} as unknown as Turn;

test("it has each attempt's queues and stages, and RUN's calls and tools in their places", () => {
  const row = rowAfter(
    [1010, STARTED],
    [1050, LOST],
    [2000, STARTED],
    [2010, SUCCEEDED],
    [2012, STARTED],
    [2100, SUCCEEDED],
    [2105, STARTED],
    [2110, SUCCEEDED],
  );
  const trajectory = { attempt: 2, turns: [TURN] } as unknown as Trajectory;
  const turn = { attempt: 2, stage: "run", turn: 0 } as const;
  expect(viewTimeline(row, trajectory)).toEqual({
    id: "a",
    created_at: "1970-01-01T00:00:01.000Z",
    finished_at: "1970-01-01T00:00:02.110Z",
    spans: [
      { kind: "queue", attempt: 1, stage: "init", start_ms: 0, end_ms: 10 },
      {
        ...{ kind: "work", attempt: 1, stage: "init" },
        start_ms: 10,
        end_ms: 50,
        error: "sandbox_died",
      },
      { kind: "queue", attempt: 2, stage: "init", start_ms: 50, end_ms: 1000 },
      { kind: "work", attempt: 2, stage: "init", start_ms: 1000, end_ms: 1010, error: null },
      { kind: "queue", attempt: 2, stage: "run", start_ms: 1010, end_ms: 1012 },
      { kind: "work", attempt: 2, stage: "run", start_ms: 1012, end_ms: 1100, error: null },
      { kind: "wait", ...turn, start_ms: 1018, end_ms: 1022 },
      {
        ...{ kind: "model", ...turn, start_ms: 1022, end_ms: 1042.5 },
        ...{ backend_id: "b1", queue_ms: 3, first_token_ms: null },
      },
      { kind: "tool", ...turn, start_ms: 1042.5, end_ms: 1044, name: "think", status: "ok" },
      {
        ...{ kind: "tool", ...turn },
        start_ms: 1044,
        end_ms: 1052,
        name: "execute_bash",
        status: "timeout",
      },
      { kind: "queue", attempt: 2, stage: "eval", start_ms: 1100, end_ms: 1105 },
      { kind: "work", attempt: 2, stage: "eval", start_ms: 1105, end_ms: 1110, error: null },
    ],
  });
});

test("what goes on has no end, and what was ended in a queue ends there", () => {
  const spansOf = (row: ReturnType<typeof rowAfter>) => viewTimeline(row, null).spans;
  const waiting = { kind: "queue", attempt: 1, stage: "init", start_ms: 0 } as const;
  expect(spansOf(rowAfter())).toEqual([{ ...waiting, end_ms: null }]);
  expect(spansOf(rowAfter([1030, CANCEL]))).toEqual([{ ...waiting, end_ms: 30 }]);
  expect(spansOf(rowAfter([1010, STARTED]))).toEqual([
    { ...waiting, end_ms: 10 },
    { kind: "work", attempt: 1, stage: "init", start_ms: 10, end_ms: null, error: null },
  ]);
  const ended = rowAfter([1010, STARTED], [1020, SUCCEEDED], [1030, CANCEL]);
  expect(spansOf(ended).slice(2)).toEqual([
    { kind: "queue", attempt: 1, stage: "run", start_ms: 20, end_ms: 30 },
  ]);
});
