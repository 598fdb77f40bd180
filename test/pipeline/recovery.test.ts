import { expect, test } from "bun:test";
import { createJob } from "../../src/jobs/job.ts";
import type { JobEvent } from "../../src/jobs/transitions.ts";
import { recoverJobs } from "../../src/pipeline/recovery.ts";
import { Store } from "../../src/store/store.ts";
import {
  CANCEL,
  jobAfter,
  LIMITS,
  ROW,
  STARTED,
  SUCCEEDED,
  storeJob,
  TO_THE_END,
} from "../support/jobs.ts";
import { tempDir } from "../support/temp-dir.ts";

const IN_RUN = [STARTED, SUCCEEDED, STARTED];
const IN_EVAL = [...IN_RUN, SUCCEEDED, STARTED];

function setup() {
  const dir = tempDir();
  const store = new Store(dir.path);
  return {
    store,
    put: (id: string, events: JobEvent[]) => storeJob(store, id, events),
    /** A job in EVAL of which RUN's outcome was stored. */
    putEvaluating(id: string, evalFromRecord: boolean) {
      const job = createJob({ id, limits: LIMITS, numAttempts: 1, evalFromRecord }, 1000);
      const seq = store.insertJob(job, ROW);
      store.updateJob(seq, job, jobAfter(id, ...IN_EVAL), { outcome: "{}" });
    },
    recover: (maxCrashes = 2) => recoverJobs(store, { nowMs: () => 5000 }, maxCrashes),
    states: () =>
      store
        .list({ limit: 100, after: 0, order: "submitted" })
        .rows.map(({ id, stage, state, attempt, crashes }) => [id, stage, state, attempt, crashes]),
    [Symbol.dispose]() {
      store[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

test("P6: jobs that were active start anew, what waited for INIT is as it was, what is over stays so", () => {
  using t = setup();
  t.put("waiting", []);
  t.put("in INIT", [STARTED]);
  t.put("before RUN", [STARTED, SUCCEEDED]);
  t.put("in RUN", IN_RUN);
  t.put("over", TO_THE_END);
  expect(t.recover()).toEqual({ resumed: 3, ended: 0 });
  expect(t.states()).toEqual([
    ["waiting", "init", "pending", 1, 0],
    ["in INIT", "init", "pending", 2, 1],
    ["before RUN", "init", "pending", 2, 0],
    ["in RUN", "init", "pending", 2, 1],
    ["over", "eval", "succeeded", 1, 0],
  ]);
});

test("a job whose RUN was recorded goes on in EVAL, unless EVAL needs the sandbox that is gone", () => {
  using t = setup();
  t.putEvaluating("needs none", true);
  t.putEvaluating("needs one", false);
  expect(t.recover()).toEqual({ resumed: 2, ended: 0 });
  expect(t.states()).toEqual([
    ["needs none", "eval", "pending", 2, 1],
    ["needs one", "init", "pending", 2, 1],
  ]);
  const outcomes = ["needs none", "needs one"].map((id) => t.store.jobById(id)?.outcome);
  expect(outcomes).toEqual(["{}", null]);
});

test("a cancel that was under way is completed, and ends the job at its place in the order", () => {
  using t = setup();
  t.put("a", [STARTED, CANCEL]);
  expect(t.recover()).toEqual({ resumed: 0, ended: 1 });
  expect(t.states()).toEqual([["a", "init", "cancelled", 1, 1]]);
  expect(t.store.jobById("a")?.finished_ms).toBe(5000);
  expect(t.store.list({ limit: 9, after: 0, order: "finished" }).rows.map(({ id }) => id)).toEqual([
    "a",
  ]);
});

test("a job that was active in too many crashes is given up as the service's fault", () => {
  using t = setup();
  t.put("a", [STARTED]);
  expect(t.recover(0)).toEqual({ resumed: 0, ended: 1 });
  expect(JSON.parse(t.store.jobById("a")?.error ?? "null")).toMatchObject({
    code: "crash_limit",
    boundary: "service",
    retryable: false,
  });
});

test("a second recovery finds nothing left to do", () => {
  using t = setup();
  t.put("a", IN_RUN);
  t.recover();
  expect(t.recover()).toEqual({ resumed: 0, ended: 0 });
});

test("a clock that was set back does not let a job wait longer than its limit", () => {
  using t = setup();
  t.put("waiting", []);
  t.put("in RUN", IN_RUN);
  recoverJobs(t.store, { nowMs: () => 400 }, 2);
  for (const id of ["waiting", "in RUN"]) {
    expect([id, t.store.jobById(id)?.deadline_ms]).toEqual([id, 400 + LIMITS.totalMs]);
  }
});

test("after the clock was set back leases, limits and callbacks go by the new time", () => {
  using t = setup();
  const { store } = t;
  const job = createJob({ id: "a", limits: LIMITS, numAttempts: 1 }, 9_000_000);
  store.transaction(() => {
    const row = { ...ROW, leaseMs: 1000, callbackUrl: "http://127.0.0.1/" };
    store.callbacks.note(store.insertJob(job, row), 9_000_000);
  });
  t.recover();
  expect(store.jobById("a")).toMatchObject({ lease_until_ms: 6000, deadline_ms: 15_000 });
  expect(store.callbacks.due(5000, 9)).toMatchObject([{ url: "http://127.0.0.1/", attempts: 0 }]);
});
