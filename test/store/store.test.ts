import { describe, expect, test } from "bun:test";
import type { JobCount } from "../../src/store/job-counts.ts";
import { toJob } from "../../src/store/rows.ts";
import { Store } from "../../src/store/store.ts";
import {
  CANCEL,
  jobAfter,
  RECOVERED,
  ROW,
  STARTED,
  SUCCEEDED,
  storeJob,
  TO_THE_END,
  VERDICT,
} from "../support/jobs.ts";
import { tempDir } from "../support/temp-dir.ts";

function setup() {
  const dir = tempDir();
  let store = new Store(dir.path);
  return {
    get store() {
      return store;
    },
    reopen() {
      store[Symbol.dispose]();
      store = new Store(dir.path);
    },
    [Symbol.dispose]() {
      store[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

const ids = (rows: { id: string }[]) => rows.map(({ id }) => id);
const idsOf = (page: { rows: { id: string }[] }) => ids(page.rows);

describe("a job", () => {
  test.each([
    ["waiting", []],
    ["active", [STARTED]],
    ["between two stages", [STARTED, SUCCEEDED]],
    ["being ended", [STARTED, CANCEL]],
    ["cancelled", [CANCEL]],
    ["succeeded", TO_THE_END],
    ["handed on after a crash", [STARTED, RECOVERED]],
  ])("that is %s is read back as it was written", (_what, events) => {
    using t = setup();
    const seq = storeJob(t.store, "a", events);
    t.reopen();
    const row = t.store.jobBySeq(seq);
    expect(row && toJob(row)).toEqual(jobAfter("a", ...events));
    expect(t.store.jobById("a")).toEqual(row);
  });

  test("has what was submitted with it", () => {
    using t = setup();
    const given = { ...ROW, usesSandbox: true, needsBackend: true, instance: '{"x":"é"}' };
    storeJob(t.store, "a", [], given);
    const shown = {
      task_kind: "fake",
      uses_sandbox: 1,
      needs_backend: 1,
      priority: 0,
      labels: null,
    };
    const row = t.store.jobById("a");
    expect(row).toMatchObject(shown);
    expect(t.store.workById("a")).toMatchObject({ ...shown, instance: '{"x":"é"}', options: "{}" });
    expect(t.store.submissionOf("a")?.sha256).toBe("sha");
    // What nobody is shown is not read where jobs are: it may be long.
    const listed = t.store.list({ after: 0, limit: 1, order: "submitted" }).rows[0];
    for (const light of [row, listed]) expect(light).not.toHaveProperty("instance");
  });

  test("of many that are submitted at once has its own id, instance and labels", () => {
    using t = setup();
    const news = Array.from({ length: 40 }, (_, index) => ({
      job: jobAfter(`job-${index}`),
      // Two of them stand out, so that runs of rows that are alike begin and end within.
      row: {
        ...ROW,
        ...{ bodySha256: `sha-${index}`, instance: `{"x":${index}}`, labels: { n: `${index}` } },
        ...(index === 12 || index === 13 ? { priority: 5, leaseMs: 1000 } : {}),
      },
    }));
    const seqs = t.store.transaction(() => t.store.insertJobs(news));
    const stored = news.map(({ job: { id } }, index) => {
      const row = t.store.workById(id);
      const labels = JSON.parse(row?.labels ?? "{}");
      expect(row?.seq).toBe(seqs[index] as number);
      return {
        id,
        sha: t.store.submissionOf(id)?.sha256,
        instance: row?.instance,
        labels,
        lease: row?.lease_ms,
      };
    });
    expect(stored).toEqual(
      news.map(({ job: { id }, row }) => ({
        ...{ id, sha: row.bodySha256, instance: row.instance, labels: row.labels },
        lease: row.leaseMs ?? null,
      })),
    );
    expect(seqs).toEqual(seqs.map((_, index) => (seqs[0] as number) + index));
  });

  test("that does not exist is null", () => {
    using t = setup();
    expect([t.store.jobById("a"), t.store.jobBySeq(1), t.store.trajectory(1)]).toEqual([
      null,
      null,
      null,
    ]);
  });

  test("keeps the most that its sandboxes used in any stage", () => {
    using t = setup();
    const seq = storeJob(t.store, "a", [STARTED]);
    const peaks = () => {
      const row = t.store.jobById("a");
      return [row?.peak_memory_bytes, row?.peak_processes];
    };
    expect(peaks()).toEqual([null, null]);
    const job = jobAfter("a", STARTED);
    t.store.updateJob(seq, job, job, { sandboxPeak: { memoryBytes: 50, processes: 2 } });
    t.store.updateJob(seq, job, job, { sandboxPeak: { memoryBytes: 20, processes: 9 } });
    t.store.updateJob(seq, job, job);
    expect(peaks()).toEqual([50, 9]);
  });

  test("keeps its outcome, backend and isolation until it is in INIT again", () => {
    using t = setup();
    const seq = storeJob(t.store, "a", []);
    const kept = () => {
      const row = t.store.jobBySeq(seq);
      return [row?.outcome, row?.backend_id, row?.isolation];
    };
    const run = jobAfter("a", STARTED, SUCCEEDED, STARTED);
    t.store.updateJob(seq, jobAfter("a", STARTED, SUCCEEDED), run, {
      outcome: "{}",
      backendId: "b",
      isolation: "B",
    });
    expect(kept()).toEqual(["{}", "b", "B"]);
    const ran = jobAfter("a", STARTED, SUCCEEDED, STARTED, SUCCEEDED);
    t.store.updateJob(seq, run, ran);
    expect(kept()).toEqual(["{}", "b", "B"]);
    t.store.updateJob(seq, ran, jobAfter("a", STARTED));
    expect(kept()).toEqual([null, null, null]);
  });

  test("that succeeded has its verdict and its reward", () => {
    using t = setup();
    storeJob(t.store, "a", TO_THE_END);
    const row = t.store.jobById("a");
    expect([row?.reward, JSON.parse(row?.verdict ?? "null")]).toEqual([0.5, VERDICT]);
  });

  test("that earned nothing has a reward of 0, which is not none", () => {
    using t = setup();
    const seq = storeJob(t.store, "a", []);
    t.store.updateJob(seq, jobAfter("a"), jobAfter("a", ...TO_THE_END), {
      verdict: { ...VERDICT, reward: 0 },
    });
    expect(t.store.jobBySeq(seq)?.reward).toBe(0);
  });
});

describe("a trajectory", () => {
  test("is read back as it was written, also after a restart", () => {
    using t = setup();
    const seq = storeJob(t.store, "a", []);
    const record = JSON.stringify({ text: "wörter \u0000 😀".repeat(10_000) });
    t.store.saveTrajectory(seq, 1, record);
    t.reopen();
    expect(t.store.trajectory(seq)).toEqual({ attempt: 1, record });
  });

  test("of a later attempt takes the place of the one before", () => {
    using t = setup();
    const seq = storeJob(t.store, "a", []);
    t.store.saveTrajectory(seq, 1, "first");
    t.store.saveTrajectory(seq, 2, "second");
    expect(t.store.trajectory(seq)).toEqual({ attempt: 2, record: "second" });
  });
});

describe("a transaction", () => {
  test("that throws has written nothing", () => {
    using t = setup();
    const work = () =>
      t.store.transaction(() => {
        storeJob(t.store, "a", []);
        throw new Error("no");
      });
    expect(work).toThrow("no");
    expect(t.store.jobById("a")).toBeNull();
  });

  test("must not be async, and has then written nothing", () => {
    using t = setup();
    const work = () =>
      t.store.transaction(async () => {
        t.store.insertJob(jobAfter("a"), ROW);
      });
    expect(work).toThrow("a transaction must not be async");
    expect(t.store.jobById("a")).toBeNull();
  });

  test("gives what its work gives", () => {
    using t = setup();
    expect(t.store.transaction(() => 7)).toBe(7);
  });
});

describe("lists", () => {
  test("are in the order of submission or of finishing, behind a cursor", () => {
    using t = setup();
    const [a, b] = ["a", "b", "c"].map((id) => storeJob(t.store, id, []));
    t.store.updateJob(b as number, jobAfter("b"), jobAfter("b", CANCEL));
    const cursor = t.store.finishedCursor;
    t.store.updateJob(a as number, jobAfter("a"), jobAfter("a", CANCEL));
    const all = { limit: 10, after: 0 };
    expect(idsOf(t.store.list({ ...all, order: "submitted" }))).toEqual(["a", "b", "c"]);
    expect(idsOf(t.store.list({ ...all, order: "finished" }))).toEqual(["b", "a"]);
    expect(idsOf(t.store.list({ ...all, order: "finished", after: cursor }))).toEqual(["a"]);
    expect(idsOf(t.store.list({ ...all, order: "submitted", after: b as number }))).toEqual(["c"]);
    expect(idsOf(t.store.list({ ...all, order: "submitted", limit: 1 }))).toEqual(["a"]);
  });

  test("of finished jobs go on after a restart where they were", () => {
    using t = setup();
    storeJob(t.store, "a", [CANCEL]);
    const cursor = t.store.finishedCursor;
    t.reopen();
    expect(t.store.finishedCursor).toBe(cursor);
    storeJob(t.store, "b", [CANCEL]);
    const later = t.store.list({ limit: 10, after: cursor, order: "finished" });
    expect(idsOf(later)).toEqual(["b"]);
  });

  test("can be of some states only", () => {
    using t = setup();
    storeJob(t.store, "a", []);
    storeJob(t.store, "b", [STARTED]);
    storeJob(t.store, "c", TO_THE_END);
    const page = t.store.list({
      states: ["active", "succeeded"],
      limit: 10,
      after: 0,
      order: "submitted",
    });
    expect(idsOf(page)).toEqual(["b", "c"]);
  });
});

describe("what waits", () => {
  test("is claimed in the order of submission, by stage, and only what there is room for", () => {
    using t = setup();
    storeJob(t.store, "sandbox", [], { usesSandbox: true });
    storeJob(t.store, "backend", [], { needsBackend: true });
    storeJob(t.store, "both", [], { usesSandbox: true, needsBackend: true });
    storeJob(t.store, "none", []);
    storeJob(t.store, "active", [STARTED]);
    storeJob(t.store, "later", [STARTED, SUCCEEDED]);
    const claim = (sandbox: boolean, backend: boolean, limit = 9) =>
      ids(
        t.store.queue.claimable({ stage: "init", client: "", limit, sandbox, backend, barred: [] }),
      );
    expect(claim(true, true)).toEqual(["sandbox", "backend", "both", "none"]);
    expect(claim(false, true)).toEqual(["backend", "none"]);
    expect(claim(true, false)).toEqual(["sandbox", "none"]);
    expect(claim(false, false)).toEqual(["none"]);
    expect(claim(true, true, 2)).toEqual(["sandbox", "backend"]);
    const all = { client: "", limit: 9, sandbox: true, backend: true, barred: [] };
    expect(ids(t.store.queue.claimable({ stage: "run", ...all }))).toEqual(["later"]);
  });

  test("for an image that is barred stays where it is", () => {
    using t = setup();
    storeJob(t.store, "none", [], { image: "a" });
    for (const image of ["a", "b", null]) {
      storeJob(t.store, `of ${image}`, [], { usesSandbox: true, image });
    }
    const claim = (...barred: string[]) =>
      ids(
        t.store.queue.claimable({
          stage: "init",
          client: "",
          limit: 9,
          sandbox: true,
          backend: true,
          barred,
        }),
      );
    expect(claim()).toEqual(["none", "of a", "of b", "of null"]);
    expect(claim("b")).toEqual(["none", "of a", "of null"]);
    expect(claim("", "a")).toEqual(["none", "of b"]);
  });

  test("longer than its total limit is found at that moment", () => {
    using t = setup();
    const { deadlineMs } = jobAfter("a");
    storeJob(t.store, "a", []);
    storeJob(t.store, "active", [STARTED]);
    storeJob(t.store, "over", [CANCEL]);
    expect(t.store.queue.pastDeadline(deadlineMs - 1)).toEqual([]);
    expect(t.store.queue.pastDeadline(deadlineMs)).toEqual(["a"]);
  });

  test("or works is counted by stage, also when a transaction is undone", () => {
    using t = setup();
    expect(t.store.counts.total).toBe(0);
    storeJob(t.store, "a", []);
    storeJob(t.store, "b", []);
    storeJob(t.store, "c", [STARTED]);
    storeJob(t.store, "d", [STARTED, SUCCEEDED, STARTED]);
    storeJob(t.store, "e", TO_THE_END);
    const counted = new Set([
      { stage: "init", state: "pending", count: 2 },
      { stage: "init", state: "active", count: 1 },
      { stage: "run", state: "active", count: 1 },
    ]);
    expect(new Set(t.store.counts.list())).toEqual(counted as Set<JobCount>);
    const undone = () => {
      storeJob(t.store, "f", []);
      throw new Error("undone");
    };
    expect(() => t.store.transaction(undone)).toThrow("undone");
    expect(new Set(t.store.counts.list())).toEqual(counted as Set<JobCount>);
    expect(t.store.counts.total).toBe(4);
  });

  test("is left alone by a start where it has lost nothing with the service that died", () => {
    using t = setup();
    const ran = [STARTED, SUCCEEDED, STARTED, SUCCEEDED];
    storeJob(t.store, "new", []);
    storeJob(t.store, "init", [STARTED]);
    storeJob(t.store, "run", [STARTED, SUCCEEDED]);
    storeJob(t.store, "eval", ran);
    storeJob(t.store, "over", TO_THE_END);
    expect(ids(t.store.leftovers.recoverable(0))).toEqual(["init", "run", "eval"]);
    const seqOf = (id: string) => t.store.jobById(id)?.seq as number;
    expect(ids(t.store.leftovers.recoverable(seqOf("init")))).toEqual(["run", "eval"]);
  });
});

test("backends are kept over a restart, in the order in which they were added", () => {
  using t = setup();
  const row = (id: string, added_ms: number) => ({
    id,
    url: `http://${id}/v1`,
    model: "m",
    api_key_env: null,
    added_ms,
    profile: null,
    model_dir: null,
    leaving: null,
    routed: 0,
  });
  t.store.backends.save(row("a", 2));
  t.store.backends.save(row("z", 1));
  t.store.backends.save({ ...row("a", 3), model: "other", api_key_env: "KEY" });
  t.reopen();
  expect(t.store.backends.list()).toEqual([
    row("z", 1),
    { ...row("a", 3), model: "other", api_key_env: "KEY" },
  ]);
  t.store.backends.delete("z");
  expect(t.store.backends.list().map(({ id }) => id)).toEqual(["a"]);
});
