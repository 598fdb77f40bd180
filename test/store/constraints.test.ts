import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { closeDatabase, openDatabase } from "../../src/store/database.ts";
import { tempDir } from "../support/temp-dir.ts";

type Columns = Record<string, string | number | null>;

const PENDING: Columns = {
  id: "j",
  task_kind: "fake",
  uses_sandbox: 0,
  needs_backend: 0,
  eval_from_record: 0,
  client: "",
  queue_key: 1,
  stage: "init",
  state: "pending",
  attempt: 1,
  crashes: 0,
  created_ms: 1,
  since_ms: 1,
  deadline_ms: 2,
  life: "{}",
};
const ACTIVE: Columns = { ...PENDING, state: "active", stage_deadline_ms: 2 };
const OVER: Columns = { ...PENDING, finished_ms: 2, finished_seq: 1 };
const FAILED: Columns = { ...OVER, state: "failed", error: "{}" };
const CANCELLED: Columns = { ...FAILED, state: "cancelled", ending: "cancel" };
const SUCCEEDED: Columns = {
  ...OVER,
  stage: "eval",
  state: "succeeded",
  reward: 1,
  verdict: "{}",
};

function setup() {
  const dir = tempDir();
  const db = openDatabase(dir.path);
  return {
    db,
    insert: (columns: Columns) => insert(db, columns),
    [Symbol.dispose]() {
      closeDatabase(db);
      dir[Symbol.dispose]();
    },
  };
}

function insert(db: Database, columns: Columns): string {
  const names = Object.keys(columns);
  const places = names.map(() => "?").join(", ");
  try {
    db.query(`INSERT INTO jobs (${names.join(", ")}) VALUES (${places})`).run(
      ...Object.values(columns),
    );
    return "stored";
  } catch (error) {
    return (error as { code: string }).code;
  }
}

describe("the table takes", () => {
  test.each([
    ["a waiting job", PENDING],
    ["an active job", ACTIVE],
    ["an active job that is being ended", { ...ACTIVE, ending: "deadline" }],
    ["a job that failed in INIT", FAILED],
    ["a cancelled job", CANCELLED],
    ["a job with a verdict", SUCCEEDED],
  ])("%s", (_what, columns) => {
    using t = setup();
    expect(t.insert(columns)).toBe("stored");
  });
});

describe("P5: the table refuses", () => {
  test.each([
    ["an unknown stage", { ...PENDING, stage: "done" }],
    ["an unknown state", { ...PENDING, state: "paused" }],
    ["an unknown reason for an end", { ...ACTIVE, ending: "boredom" }],
    ["an attempt before the first", { ...PENDING, attempt: 0 }],
    ["an active job without its stage's deadline", { ...ACTIVE, stage_deadline_ms: null }],
    ["a waiting job with a stage's deadline", { ...PENDING, stage_deadline_ms: 2 }],
    ["a final job without the time of its end", { ...FAILED, finished_ms: null }],
    ["a waiting job that has ended", { ...PENDING, finished_ms: 2, finished_seq: 1 }],
    ["a final job that no cursor finds", { ...FAILED, finished_seq: null }],
    ["a waiting job in the order of finishing", { ...PENDING, finished_seq: 1 }],
    ["a success without a verdict", { ...SUCCEEDED, verdict: null, reward: null }],
    ["a verdict without a reward", { ...SUCCEEDED, reward: null }],
    ["a reward without a verdict", { ...PENDING, reward: 1 }],
    ["a reward of a failed job", { ...FAILED, reward: 0, verdict: "{}" }],
    ["a reward of a cancelled job", { ...CANCELLED, reward: 0, verdict: "{}" }],
    ["a success outside EVAL", { ...SUCCEEDED, stage: "run" }],
    ["a failure without an error", { ...FAILED, error: null }],
    ["a success with an error", { ...SUCCEEDED, error: "{}" }],
    ["a waiting job with an error", { ...PENDING, error: "{}" }],
    ["an active job that waits to be tried again", { ...ACTIVE, not_before_ms: 2 }],
    ["a final job that waits to be tried again", { ...FAILED, not_before_ms: 2 }],
    ["a final job with a stage's deadline", { ...SUCCEEDED, stage_deadline_ms: 2 }],
    ["a success that no cursor finds", { ...SUCCEEDED, finished_seq: null }],
    ["a success without the time of its end", { ...SUCCEEDED, finished_ms: null }],
    ["an unknown stage of an active job", { ...ACTIVE, stage: "done" }],
    ["an unknown stage of a final job", { ...FAILED, stage: "done" }],
    ["a sample of no group", { ...PENDING, sample: 1 }],
  ])("%s", (_what, columns) => {
    using t = setup();
    expect(t.insert(columns)).toBe("SQLITE_CONSTRAINT_CHECK");
  });

  test("a second job of the same id, and a second one at the same place of the order", () => {
    using t = setup();
    expect([
      t.insert(FAILED),
      t.insert(PENDING),
      t.insert({ ...FAILED, id: "k" }),
      t.insert({ ...FAILED, id: "k", finished_seq: 2 }),
    ]).toEqual(["stored", "SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_UNIQUE", "stored"]);
  });

  test("a value of another type, and a trajectory of no job", () => {
    using t = setup();
    expect(t.insert({ ...PENDING, created_ms: "soon" })).toBe("SQLITE_CONSTRAINT_DATATYPE");
    for (const orphan of ["trajectories VALUES (7, 1, x'00')", "labels VALUES ('a', 'b', 7)"]) {
      expect(() => t.db.run(`INSERT INTO ${orphan}`)).toThrow("FOREIGN KEY constraint failed");
    }
  });
});
