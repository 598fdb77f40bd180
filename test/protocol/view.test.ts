import { expect, test } from "bun:test";
import type { JobLife } from "../../src/jobs/life.ts";
import { type RolloutView, viewAccepted, viewRollout } from "../../src/protocol/view.ts";
import type { NewRow } from "../../src/store/new-jobs.ts";
import { Store } from "../../src/store/store.ts";
import type { JobRow } from "../../src/store/tables.ts";
import { jobAfter, ROW } from "../support/jobs.ts";
import { tempDir } from "../support/temp-dir.ts";

const LIFE: JobLife = {
  numAttempts: 3,
  limits: { initMs: 1, runMs: 2, evalMs: 3, totalMs: 4 },
  failures: [],
  endingReason: null,
  timings: {
    init: { queuedMs: 1, activeMs: 2 },
    run: { queuedMs: 3, activeMs: 4 },
    eval: { queuedMs: 5, activeMs: 6 },
  },
  visits: [],
};
const WAITING: JobRow = {
  seq: 7,
  id: "a",
  task_kind: "math",
  uses_sandbox: 1,
  needs_backend: 1,
  stage: "init",
  state: "pending",
  attempt: 1,
  crashes: 0,
  ending: null,
  created_ms: 1_700_000_000_123,
  since_ms: 1_700_000_000_123,
  stage_deadline_ms: null,
  deadline_ms: 1_700_000_100_000,
  backend_id: null,
  outcome: null,
  error: null,
  reward: null,
  verdict: null,
  finished_ms: null,
  finished_seq: null,
  isolation: null,
  peak_memory_bytes: null,
  peak_processes: null,
  image: null,
  not_before_ms: null,
  client: "",
  priority: 0,
  queue_key: 0,
  life: JSON.stringify(LIFE),
  labels: null,
  lease_ms: null,
  lease_until_ms: null,
  callback_url: null,
  eval_from_record: 1,
  rescore_of: null,
  group_seq: null,
  sample: null,
  sampled_tokens: null,
};
const VIEW: RolloutView = {
  id: "a",
  task_kind: "math",
  stage: "init",
  state: "pending",
  attempt: 1,
  num_attempts: 3,
  failures: [],
  labels: {},
  priority: 0,
  lease_until: null,
  paused: false,
  ending: null,
  reward: null,
  verdict: null,
  stop_reason: null,
  final_message: null,
  turns: null,
  error: null,
  backend_id: null,
  rescore_of: null,
  isolation: null,
  sandbox_peak: null,
  timings: {
    init: { queued_ms: 1, active_ms: 2 },
    run: { queued_ms: 3, active_ms: 4 },
    eval: { queued_ms: 5, active_ms: 6 },
  },
  created_at: "2023-11-14T22:13:20.123Z",
  finished_at: null,
};

test("a waiting rollout shows what is known of it, and nothing of the service's own", () => {
  expect(viewRollout(WAITING)).toEqual(VIEW);
});

test("a rollout with a verdict shows what the policy did and what it earned", () => {
  const verdict = { reward: 0, rule: "not_equal", reason: "5 is not 4." };
  const row: JobRow = {
    ...WAITING,
    stage: "eval",
    state: "succeeded",
    backend_id: "b",
    isolation: "B",
    peak_memory_bytes: 5_000_000,
    peak_processes: 3,
    outcome: '{"stop_reason":"finish","final_message":"5","turns":0}',
    reward: 0,
    verdict: JSON.stringify(verdict),
    finished_ms: 1_700_000_001_000,
  };
  expect(viewRollout(row)).toEqual({
    ...VIEW,
    stage: "eval",
    state: "succeeded",
    backend_id: "b",
    isolation: "B",
    sandbox_peak: { memory_bytes: 5_000_000, processes: 3 },
    stop_reason: "finish",
    final_message: "5",
    turns: 0,
    reward: 0,
    verdict,
    finished_at: "2023-11-14T22:13:21.000Z",
  });
});

test("a failure says in which stage it was, and has no reward", () => {
  const error = { code: "engine_timeout", message: "slow", boundary: "engine", retryable: true };
  const row: JobRow = {
    ...WAITING,
    stage: "run",
    state: "failed",
    error: JSON.stringify(error),
    finished_ms: 1_700_000_001_000,
  };
  expect(viewRollout(row)).toEqual({
    ...VIEW,
    stage: "run",
    state: "failed",
    error: { ...error, stage: "run" } as never,
    finished_at: "2023-11-14T22:13:21.000Z",
  });
});

test("attempts that failed and were followed by another are shown with their errors", () => {
  const error = { code: "worker_crashed", message: "x", boundary: "service", retryable: true };
  const failures = [{ attempt: 1, stage: "run", atMs: 1_700_000_001_000, error }];
  const life = JSON.stringify({ ...LIFE, failures });
  expect(viewRollout({ ...WAITING, attempt: 2, life }).failures).toEqual([
    { attempt: 1, stage: "run", failed_at: "2023-11-14T22:13:21.000Z", error: error as never },
  ]);
});

test("an end is shown only while it is under way", () => {
  const active = { ...WAITING, state: "active", ending: "cancel" } as const;
  const shown = [active, { ...active, state: "cancelled" } as const].map(viewRollout);
  expect(shown.map(({ state, ending }) => [state, ending])).toEqual([
    ["active", "cancel"],
    ["cancelled", null],
  ]);
});

test("a rollout is shown as it was accepted just as it is shown when its row is read", () => {
  using dir = tempDir();
  using store = new Store(dir.path);
  const outcome = '{"stop_reason":"finish","final_message":"5","turns":2}';
  const rows: Partial<NewRow>[] = [
    {},
    { labels: { step: "7" }, priority: -3, client: "peer" },
    { leaseMs: 5000, callbackUrl: "http://a/" },
    { rescore: { of: "other", outcome } },
  ];
  for (const [index, given] of rows.entries()) {
    const job = jobAfter(`job-${index}`);
    const row = { ...ROW, ...given };
    store.insertJob(job, row);
    const read = store.jobById(job.id);
    // As text, because the answer is one: the order of the fields is the same too.
    expect(JSON.stringify(viewAccepted(job, row))).toBe(JSON.stringify(read && viewRollout(read)));
  }
});
