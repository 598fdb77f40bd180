import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { viewRollout } from "../../src/protocol/view.ts";
import { MIGRATIONS } from "../../src/store/migrations.ts";
import { toJob } from "../../src/store/rows.ts";
import { Store } from "../../src/store/store.ts";
import { openCopy } from "../support/database-copy.ts";
import { tempDir } from "../support/temp-dir.ts";

/** The last schema that had all of a job in one row. */
const WIDE = 14;

const OLD = {
  body_sha256: "sha",
  task_kind: "echo",
  uses_sandbox: 1,
  needs_backend: 0,
  instance: '{"data_source":"echo"}',
  options: '{"sampling":{"seed":1}}',
  attempt: 2,
  crashes: 1,
  limits: '{"initMs":1,"runMs":2,"evalMs":3,"totalMs":4}',
  created_ms: 1000,
  since_ms: 1100,
  deadline_ms: 9000,
  init_queued_ms: 1,
  init_active_ms: 2,
  run_queued_ms: 3,
  run_active_ms: 4,
  eval_queued_ms: 5,
  eval_active_ms: 6,
  num_attempts: 3,
  client: "peer",
  priority: 7,
  queue_key: 500,
  image: "python",
  eval_from_record: 1,
};
const ERROR = { code: "sandbox_died", message: "m", boundary: "sandbox", retryable: true };
const WAITING = {
  ...{ ...OLD, id: "waits", stage: "init", state: "pending", not_before_ms: 2000 },
  failures: JSON.stringify([{ attempt: 1, stage: "run", atMs: 1050, error: ERROR }]),
  visits: JSON.stringify([[1, "run", 1010, 1020, 1050]]),
};
const DONE = {
  ...{ ...OLD, id: "done", stage: "eval", state: "succeeded", backend_id: "b", isolation: "A" },
  ...{ outcome: '{"stop_reason":"finish","final_message":"x","turns":1}', reward: 0.5 },
  ...{ verdict: '{"reward":0.5,"rule":"r","reason":"s"}', finished_ms: 3000, finished_seq: 4 },
  ...{ labels: '{"step":"7"}', callback_url: "http://a/", peak_memory_bytes: 9, peak_processes: 2 },
  sampled_tokens: 12,
};

function setup(version: number, rows: Record<string, string | number>[]) {
  const dir = tempDir();
  const db = new Database(dir.file("rolloutd.db"));
  for (const sql of MIGRATIONS.slice(0, version)) db.run(sql);
  db.run(`PRAGMA user_version = ${version}`);
  for (const row of rows) {
    const names = Object.keys(row);
    const places = names.map(() => "?").join(", ");
    db.query(`INSERT INTO jobs (${names}) VALUES (${places})`).run(...Object.values(row));
  }
  if (version === WIDE) {
    const { seq } = db.query("SELECT seq FROM jobs WHERE id = 'done'").get() as { seq: number };
    db.run("INSERT INTO labels VALUES ('step', '7', ?)", [seq]);
    db.run("INSERT INTO callbacks VALUES (?, 1, 5)", [seq]);
    db.run("INSERT INTO trajectories VALUES (?, 2, ?)", [seq, Bun.zstdCompressSync("[1]")]);
    db.run("UPDATE sqlite_sequence SET seq = 40 WHERE name = 'jobs'");
  }
  db.close();
  const store = new Store(dir.path);
  return {
    store,
    path: dir.path,
    [Symbol.dispose]() {
      store[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

test("jobs of wide rows come over whole, with all that belongs to them", () => {
  using t = setup(WIDE, [WAITING, DONE]);
  const waits = t.store.jobById("waits");
  const limits = { initMs: 1, runMs: 2, evalMs: 3, totalMs: 4 };
  expect(waits && toJob(waits)).toEqual({
    ...{ id: "waits", stage: "init", state: "pending", attempt: 2, crashes: 1, numAttempts: 3 },
    failures: [{ attempt: 1, stage: "run", atMs: 1050, error: ERROR as never }],
    ...{ notBeforeMs: 2000, ending: null, endingReason: null, limits, evalFromRecord: true },
    ...{ createdMs: 1000, sinceMs: 1100, stageDeadlineMs: null, deadlineMs: 9000 },
    timings: {
      init: { queuedMs: 1, activeMs: 2 },
      run: { queuedMs: 3, activeMs: 4 },
      eval: { queuedMs: 5, activeMs: 6 },
    },
    visits: [[1, "run", 1010, 1020, 1050]],
    ...{ error: null, finishedMs: null },
  });
  const done = t.store.workById("done");
  if (!done) throw new Error("it is gone");
  const { id, ...kept } = DONE;
  const { num_attempts, limits: _limits, body_sha256, ...same } = kept;
  const columns = Object.entries(same).filter(([name]) => !/_(queued|active)_ms$/.test(name));
  expect(done).toMatchObject(Object.fromEntries(columns));
  expect(t.store.submissionOf("done")?.sha256).toBe(body_sha256);
  expect(viewRollout(done)).toMatchObject({ id, num_attempts, labels: { step: "7" }, turns: 1 });
  expect(t.store.trajectory(done.seq)).toEqual({ attempt: 2, record: "[1]" });
  expect(t.store.callbacks.due(9, 9)).toEqual([{ seq: done.seq, url: "http://a/", attempts: 1 }]);
  const labelled = { labels: { step: "7" }, limit: 9, after: 0, order: "submitted" } as const;
  expect(t.store.list(labelled).rows.map((row) => row.id)).toEqual(["done"]);
  expect(t.store.finishedCursor).toBe(4);
  expect(t.store.queue.nextDueMs()).toBe(2000);
});

test("no position that a deleted job had is given out again", () => {
  using t = setup(WIDE, [WAITING, DONE]);
  const row = t.store.jobById("waits");
  if (!row) throw new Error("it is gone");
  const again = { bodySha256: "", taskKind: "echo", usesSandbox: false, needsBackend: false };
  const texts = { image: null, instance: "{}", options: "{}" };
  const seq = t.store.insertJob({ ...toJob(row), id: "new" }, { ...again, ...texts });
  expect(seq).toBe(41);
});

test("whatever references a job still does, and is held to it", () => {
  using t = setup(WIDE, [WAITING, DONE]);
  using copy = openCopy(t.path);
  const { db } = copy;
  db.run("PRAGMA foreign_keys = ON");
  expect(db.query("PRAGMA foreign_key_check").values()).toEqual([]);
  for (const table of ["labels", "callbacks", "trajectories", "job_bodies"]) {
    const [owner] = db.query<{ table: string }, []>(`PRAGMA foreign_key_list(${table})`).all();
    expect(owner?.table).toBe("jobs");
  }
  expect(() => db.run("DELETE FROM jobs")).toThrow("FOREIGN KEY constraint failed");
});

test("a database of the first version opens", () => {
  const { num_attempts, client, priority, queue_key, image, eval_from_record, ...first } = OLD;
  using t = setup(1, [{ ...first, id: "a", stage: "init", state: "pending" }]);
  const row = t.store.jobById("a");
  expect(row).toMatchObject({ client: "", priority: 0, queue_key: 1000, image: null });
  expect(row && toJob(row)).toMatchObject({ numAttempts: 1, failures: [], visits: [] });
});
