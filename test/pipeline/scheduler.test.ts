import { describe, expect, test } from "bun:test";
import { type ErrorBody, ServiceError } from "../../src/errors.ts";
import type { Stage } from "../../src/jobs/job.ts";
import type { StartStage } from "../../src/pipeline/messages.ts";
import type { Submission } from "../../src/pipeline/parts.ts";
import { recoverJobs } from "../../src/pipeline/recovery.ts";
import { Scheduler } from "../../src/pipeline/scheduler.ts";
import type { SandboxHandle } from "../../src/sandbox/sandbox.ts";
import { toJob } from "../../src/store/rows.ts";
import { Store } from "../../src/store/store.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { fakeChooser } from "../support/fake-backends.ts";
import { FakeThread } from "../support/fake-thread.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const HOUR = 3_600_000;
const NEVER = new Promise<void>(() => {});
const BROKEN: ErrorBody = {
  code: "sandbox_start_failed",
  message: "no",
  boundary: "sandbox",
  retryable: true,
};

function setup(
  overrides: {
    slots?: number;
    starts?: number;
    ahead?: number;
    backends?: boolean;
    queued?: number;
    /** By default every image is on the node. */
    imageOnNode?: (image: string) => string | null;
  } = {},
) {
  const dir = tempDir();
  const store = new Store(dir.path);
  const clock = { ms: 1_000_000, nowMs: () => clock.ms };
  /** For how long calls have been held back. */
  const waited = { ms: 0, looks: 0 };
  const waitedMs = () => {
    waited.looks++;
    return waited.ms;
  };
  const threads = {
    init: [] as FakeThread[],
    run: [] as FakeThread[],
    eval: [] as FakeThread[],
  };
  const killed: string[] = [];
  const ended: string[] = [];
  const fatal: unknown[] = [];
  const watches = new Map<string, AbortController>();
  const pool = { threads: 1, slots: overrides.slots ?? 2 };
  const scheduler = new Scheduler({
    store,
    clock,
    log: createLog("silent"),
    backends: fakeChooser(overrides.backends, waitedMs),
    sandboxes: {
      kill: ({ id }) => killed.push(id),
      watch: ({ id }) => {
        const crossed = new AbortController();
        watches.set(id, crossed);
        return { crossed: crossed.signal, [Symbol.dispose]: () => watches.delete(id) };
      },
      end: async ({ id }) => void ended.push(id),
    },
    isTight: () => false,
    moduleOf: () => "/mine.ts",
    imageOnNode: overrides.imageOnNode ?? (() => "/"),
    spawn: (stage: Stage) => {
      const thread = new FakeThread();
      threads[stage].push(thread);
      return thread;
    },
    settings: {
      pools: { init: pool, run: pool, eval: pool },
      startsAtOnce: overrides.starts ?? 16,
      imagesAtOnce: 2,
      warmSandboxes: 0,
      maxSandboxesAhead: overrides.ahead ?? 16,
      maxQueuedJobs: overrides.queued ?? 5,
      maxPausedAlive: 1,
      carryLimitMs: 1_000_000,
      cancelGraceMs: 1000,
    },
    onFatal: (error) => fatal.push(error),
  });
  const started = (stage: Stage, count: number): Promise<StartStage[]> =>
    waitFor(() => {
      const starts = threads[stage].flatMap((thread) => thread.starts());
      return starts.length >= count && starts;
    }, `${count} starts of ${stage}`);
  return {
    dir,
    store,
    clock,
    waited,
    scheduler,
    threads,
    killed,
    ended,
    watches,
    fatal,
    started,
    thread: (stage: Stage) => threads[stage].at(-1) as FakeThread,
    state: (id: string) => {
      const row = store.jobById(id);
      return row && `${row.stage}/${row.state}`;
    },
    async [Symbol.asyncDispose]() {
      for (const thread of Object.values(threads).flat()) {
        for (const start of thread.starts()) thread.finish(start, { error: BROKEN });
      }
      await scheduler.drain(0, NEVER);
      store[Symbol.dispose]();
      dir[Symbol.dispose]();
      expect(fatal).toEqual([]);
    },
  };
}

/** The thread says that the image of a job is on the node, at a path that is there. */
function slotFreed({ jobId, attempt, stage }: StartStage) {
  return { type: "slot_freed", jobId, attempt, stage } as const;
}

function found(thread: FakeThread, { jobId, attempt }: StartStage): void {
  thread.emit({ type: "image_found", jobId, attempt, path: "/" });
}

function submission(
  id: string,
  {
    sandbox = false,
    body = "x",
    totalMs = HOUR,
    numAttempts = 1,
    evalFromRecord = false,
    scoredInFresh = false,
    image = null as string | null,
  } = {},
): Submission {
  return {
    job: {
      id,
      limits: { initMs: HOUR, runMs: HOUR, evalMs: HOUR, totalMs },
      numAttempts,
      evalFromRecord,
    },
    row: {
      bodySha256: body,
      taskKind: "fake",
      usesSandbox: sandbox,
      scoredInFresh,
      needsBackend: sandbox,
      image,
      instance: "{}",
      options: JSON.stringify({ image }),
    },
  };
}

function handle(id: string): SandboxHandle {
  const holder = { holderPid: 1, holderStartTime: "1", starterPid: 1, starterStartTime: "1" };
  const control = { controlFd: -1, controlSocket: "none" };
  return { id, driver: "host", dir: `/none/${id}`, ...control, ...holder, isolation: null };
}

describe("submitting", () => {
  test("the same id with the same body is the same job; with another body nothing is accepted", async () => {
    await using t = setup();
    expect(await t.scheduler.submit([submission("a")])).toMatchObject([{ id: "a", created: true }]);
    expect(await t.scheduler.submit([submission("a"), submission("b")])).toMatchObject([
      { id: "a", created: false, job: null },
      { id: "b", created: true },
    ]);
    const taken = { ...submission("a", { body: "y" }), place: "rollouts[1]" };
    const conflict = t.scheduler.submit([submission("c"), taken]);
    expect(await conflict.catch((error) => [error.code, error.field])).toEqual([
      "id_conflict",
      "rollouts[1].id",
    ]);
    expect(t.store.jobById("c")).toBeNull();
  });

  test("more than the queue may hold is refused whole, and costs no other job anything", async () => {
    await using t = setup();
    const many = ["a", "b", "c", "d", "e", "f"].map((id) => submission(id));
    const refused = await t.scheduler.submit(many).catch((error) => error.code);
    expect(refused).toBe("queue_full");
    expect(await t.scheduler.submit(many.slice(1))).toHaveLength(5);
  });
});

describe("the stages", () => {
  test("overlap: a job runs while another is in INIT and a third in EVAL", async () => {
    await using t = setup({ slots: 1 });
    await t.scheduler.submit(["a", "b", "c"].map((id) => submission(id)));
    const [a] = await t.started("init", 1);
    t.thread("init").finish(a as StartStage);
    const [, b] = await t.started("init", 2);
    const [aRun] = await t.started("run", 1);
    t.thread("run").finish(aRun as StartStage);
    t.thread("init").finish(b as StartStage);
    await t.started("eval", 1);
    await t.started("run", 2);
    await t.started("init", 3);
    expect([t.state("a"), t.state("b"), t.state("c")]).toEqual([
      "eval/active",
      "run/active",
      "init/active",
    ]);
  });

  test("what ends together goes on in the order of the queue, where not all of it can", async () => {
    await using t = setup({ slots: 2 });
    await t.scheduler.submit([submission("runs")]);
    t.thread("init").finish((await t.started("init", 1))[0] as StartStage);
    await t.started("run", 1);
    const urgent = submission("urgent");
    urgent.row.priority = 5;
    await t.scheduler.submit([submission("first"), urgent]);
    const starts = await t.started("init", 3);
    const of = (id: string) => starts.find(({ jobId }) => jobId === id) as StartStage;
    for (const id of ["first", "urgent"]) t.thread("init").finish(of(id));
    await t.started("run", 2);
    expect([t.state("first"), t.state("urgent")]).toEqual(["run/pending", "run/active"]);
  });

  test("a job that goes on at once is told of as one that waits, and as one that works", async () => {
    await using t = setup();
    const told: string[] = [];
    t.scheduler.feed.subscribe(({ stage, state }) => told.push(`${stage}/${state}`));
    await t.scheduler.submit([submission("a")]);
    for (const stage of ["init", "run"] as const) {
      const [start] = await t.started(stage, 1);
      t.clock.ms += 10;
      t.thread(stage).finish(start as StartStage, stage === "run" ? { outcome: '{"x":1}' } : {});
    }
    const [start] = await t.started("eval", 1);
    expect(start?.outcome).toBe('{"x":1}');
    const stages = ["init", "run", "eval"].flatMap((it) => [`${it}/pending`, `${it}/active`]);
    expect(told).toEqual(stages);
    const row = t.store.jobById("a");
    expect(row).toMatchObject({ stage: "eval", state: "active", outcome: '{"x":1}' });
    expect(row && toJob(row).visits).toEqual([
      [1, "init", 1_000_000, 1_000_000, 1_000_010],
      [1, "run", 1_000_010, 1_000_010, 1_000_020],
      [1, "eval", 1_000_020, 1_000_020, null],
    ]);
  });

  test("a job that goes through all of them has its reward, and its waiters hear of it", async () => {
    await using t = setup();
    await t.scheduler.submit([submission("a")]);
    const waited = t.scheduler.waiters.job("a", 10_000, new AbortController().signal);
    for (const stage of ["init", "run", "eval"] as const) {
      const [start] = await t.started(stage, 1);
      t.thread(stage).finish(start as StartStage, stage === "run" ? { trajectory: "[1]" } : {});
    }
    expect(await waited).toBe(true);
    const row = t.store.jobById("a");
    expect(row).toMatchObject({ state: "succeeded", reward: 1, finished_seq: 1 });
    expect(t.store.trajectory(row?.seq ?? 0)).toEqual({ attempt: 1, record: "[1]" });
  });

  test("INIT gets no more than a set number of sandboxes ahead of RUN", async () => {
    await using t = setup({ slots: 4, ahead: 2, backends: false });
    const ids = ["a", "b", "c", "d"];
    await t.scheduler.submit(ids.map((id) => submission(id, { sandbox: true })));
    const [a, b] = await t.started("init", 2);
    t.thread("init").finish(a as StartStage, { handle: handle("a") });
    t.thread("init").finish(b as StartStage, { handle: handle("b") });
    await waitFor(() => t.state("b") === "run/pending", "b to wait for RUN");
    // Nobody runs, so two sandboxes wait: a job without one may still start, a third with one may not.
    await t.scheduler.submit([submission("plain")]);
    const starts = await t.started("init", 3);
    expect(starts.map(({ jobId }) => jobId)).toEqual(["a", "b", "plain"]);
  });

  test("a sandbox that is lost while its job waits for RUN ends the job with the reason", async () => {
    await using t = setup({ backends: false });
    await t.scheduler.submit([
      submission("a", { sandbox: true }),
      submission("b", { sandbox: true, numAttempts: 2 }),
    ]);
    const [a, b] = (await t.started("init", 2)) as [StartStage, StartStage];
    t.thread("init").finish(a, { handle: handle("a") });
    t.thread("init").finish(b, { handle: handle("b") });
    await waitFor(() => t.watches.size === 2, "both to be watched");
    t.watches.get("a")?.abort(new ServiceError("oom", "too much"));
    t.watches.get("b")?.abort(new ServiceError("sandbox_died", "gone"));
    await waitFor(() => t.state("a") === "run/failed", "a to fail");
    expect(JSON.parse(t.store.jobById("a")?.error ?? "")).toMatchObject({ code: "oom" });
    // The other one's reason is no fault of its own: it may begin anew.
    await waitFor(() => t.state("b") === "init/pending", "b to wait for INIT");
    expect([t.ended.sort(), t.watches.size]).toEqual([["a", "b"], 0]);
  });

  test("few sandboxes start at once; who waits for that waits in the queue", async () => {
    await using t = setup({ slots: 4, starts: 1 });
    const ids = ["a", "b"];
    await t.scheduler.submit(ids.map((id) => submission(id, { sandbox: true })));
    await t.scheduler.submit([submission("plain")]);
    const [a] = (await t.started("init", 2)) as [StartStage];
    expect([t.state("a"), t.state("b"), t.state("plain")]).toEqual([
      "init/active",
      "init/pending",
      "init/active",
    ]);
    t.thread("init").finish(a, { handle: handle("a") });
    await waitFor(() => t.state("b") === "init/active", "b to have its turn");
  });

  test("jobs of an image that is not on the node wait for one of them, and delay no others", async () => {
    const imageOnNode = (image: string) => (image === "ready" ? "/" : null);
    await using t = setup({ slots: 2, starts: 2, queued: 9, imageOnNode });
    const of = (image: string, ...ids: string[]) =>
      ids.map((id) => submission(id, { sandbox: true, image }));
    const slow = [...of("slow", "s1", "s2"), ...of("slower", "l1"), ...of("slowest", "x1", "x2")];
    await t.scheduler.submit([...slow, ...of("ready", "r1", "r2", "r3")]);
    // Two images are fetched, as many as may be, and hold neither slots nor starts.
    const [s1, l1, r1, r2] = (await t.started("init", 4)) as StartStage[];
    expect([s1, l1, r1, r2].map((start) => start?.jobId)).toEqual(["s1", "l1", "r1", "r2"]);
    const fail = (start?: StartStage) =>
      t.thread("init").finish(start as StartStage, { error: BROKEN });
    fail(r1);
    const r3 = (await t.started("init", 5))[4];
    expect([r3?.jobId, t.state("s2"), t.state("x1")]).toEqual([
      "r3",
      "init/pending",
      "init/pending",
    ]);
    // One arrives, and its job takes a start of its own from here on.
    found(t.thread("init"), s1 as StartStage);
    fail(r2);
    fail(r3);
    expect((await t.started("init", 6))[5]?.jobId).toBe("s2");
    fail(s1);
    const x1 = (await t.started("init", 7))[6];
    expect([x1?.jobId, t.state("x2")]).toEqual(["x1", "init/pending"]);
    // This one can't be had: its job fails, and the next of its image tries.
    fail(x1);
    await waitFor(() => t.state("x2") === "init/active", "the turn of an image's next job");
  });

  test("also where only EVAL starts one, and not where RUN has left it one", async () => {
    const imageOnNode = () => null;
    await using t = setup({ slots: 1, queued: 9, imageOnNode });
    const scored = { evalFromRecord: true, scoredInFresh: true };
    const of = (image: string, ...ids: string[]) =>
      ids.map((id) => submission(id, { ...scored, image }));
    const plain = submission("plain", { evalFromRecord: true, image: "slow" });
    await t.scheduler.submit([...of("slow", "s1", "s2", "s3"), plain, ...of("other", "o1")]);
    for (const [index, id] of ["s1", "s2", "s3", "plain", "o1"].entries()) {
      for (const stage of ["init", "run"] as const) {
        const start = (await t.started(stage, index + 1))[index] as StartStage;
        expect(start.jobId).toBe(id);
        const left = stage === "run" && id === "s3" ? { handle: handle("s3") } : {};
        t.thread(stage).finish(start, left);
      }
    }
    // An image's first job holds no slot, so that who needs no image has that.
    const [s1, plainEval] = (await t.started("eval", 2)) as [StartStage, StartStage];
    expect([s1.jobId, plainEval.jobId]).toEqual(["s1", "plain"]);
    t.thread("eval").finish(plainEval);
    const o1 = (await t.started("eval", 3))[2];
    const waiting = [t.state("s2"), t.state("s3")];
    expect([o1?.jobId, ...waiting]).toEqual(["o1", "eval/pending", "eval/pending"]);
    // From here on it takes the slot. The next of its image finds that free, the third has a sandbox.
    found(t.thread("eval"), s1);
    t.thread("eval").finish(s1);
    const s2 = (await t.started("eval", 4))[3] as StartStage;
    t.thread("eval").finish(s2, { error: BROKEN });
    expect((await t.started("eval", 5))[4]).toMatchObject({ jobId: "s3", handle: handle("s3") });
  });

  test("the level of a job's sandbox is booked with it, and stays when the sandbox is gone", async () => {
    await using t = setup();
    await t.scheduler.submit([submission("a", { sandbox: true })]);
    const [init] = (await t.started("init", 1)) as [StartStage];
    t.thread("init").finish(init, { handle: { ...handle("a"), isolation: "B" } });
    const [run] = (await t.started("run", 1)) as [StartStage];
    expect(t.store.jobById("a")?.isolation).toBe("B");
    t.thread("run").finish(run, { handle: null, outcome: "{}" });
    await waitFor(() => t.state("a") === "eval/active", "a to be in EVAL");
    expect(t.store.jobById("a")?.isolation).toBe("B");
  });

  test("a late answer of an old attempt is refused and its sandbox ended", async () => {
    await using t = setup();
    await t.scheduler.submit([submission("a")]);
    const [start] = (await t.started("init", 1)) as [StartStage];
    t.thread("init").emit({
      type: "stage_finished",
      ...{ jobId: "a", attempt: 7, stage: "init" },
      ...{ handle: handle("old"), error: null, outcome: null, trajectory: null, verdict: null },
    });
    await waitFor(() => t.ended.includes("old"), "the old sandbox to be ended");
    expect([t.scheduler.staleAnswers, t.state("a")]).toEqual([1, "init/active"]);
    expect(start.attempt).toBe(1);
  });
});

describe("ending", () => {
  test("a cancelled job keeps its slot until the worker confirms, and what it recorded", async () => {
    await using t = setup({ slots: 1 });
    await t.scheduler.submit([submission("a"), submission("b")]);
    const [a] = (await t.started("init", 1)) as [StartStage];
    expect(await t.scheduler.cancel("a")).toMatchObject({ state: "active", ending: "cancel" });
    expect(t.thread("init").received.at(-1)).toMatchObject({ type: "cancel", jobId: "a" });
    expect(t.state("b")).toBe("init/pending");
    t.thread("init").finish(a, { error: BROKEN, trajectory: "[]" });
    await t.started("init", 2);
    expect(t.store.jobById("a")).toMatchObject({ state: "cancelled", reward: null });
    expect(t.store.trajectory(1)?.record).toBe("[]");
  });

  describe("a slot that an aborted stage gives back before its record is written", () => {
    async function cancelled() {
      const t = setup({ slots: 1 });
      await t.scheduler.submit(["a", "b", "c"].map((id) => submission(id)));
      const [a] = (await t.started("init", 1)) as [StartStage];
      await t.scheduler.cancel("a");
      return { t, a, thread: t.thread("init") };
    }

    test("is the next job's, and the record is booked when it comes", async () => {
      const { t, a, thread } = await cancelled();
      await using _ = t;
      thread.emit(slotFreed(a), slotFreed(a));
      const [, b] = (await t.started("init", 2)) as [StartStage, StartStage];
      expect([b.jobId, t.state("a"), t.state("c")]).toEqual(["b", "init/active", "init/pending"]);
      thread.finish(a, { error: BROKEN, trajectory: "[]" });
      await waitFor(() => t.state("a") === "init/cancelled", "the end of a");
      expect([t.store.trajectory(1)?.record, t.state("c")]).toEqual(["[]", "init/pending"]);
      thread.finish(b, { error: BROKEN });
      expect((await t.started("init", 3))[2]?.jobId).toBe("c");
    });

    test("is not given on while more records are to come than there are slots", async () => {
      const { t, a, thread } = await cancelled();
      await using _ = t;
      thread.emit(slotFreed(a));
      const [, b] = (await t.started("init", 2)) as [StartStage, StartStage];
      await t.scheduler.cancel("b");
      thread.emit(slotFreed(b));
      await waitFor(() => t.scheduler.pools.init.workers[0]?.jobIds.size === 0, "b to have left");
      expect([t.scheduler.pools.init.freeSlots(), t.state("c")]).toEqual([0, "init/pending"]);
      thread.finish(a, { error: BROKEN });
      expect((await t.started("init", 3))[2]?.jobId).toBe("c");
    });

    test("is not an earlier attempt's to give", async () => {
      const { t, a, thread } = await cancelled();
      await using _ = t;
      thread.emit({ ...slotFreed(a), attempt: 7 }, { ...slotFreed(a), stage: "run" });
      await t.scheduler.submit([submission("d")]);
      expect([t.state("b"), t.scheduler.pools.init.freeSlots()]).toEqual(["init/pending", 0]);
    });

    test("leaves its job to be settled with those of a thread that is lost", async () => {
      const { t, a, thread } = await cancelled();
      await using _ = t;
      thread.emit(slotFreed(a));
      await t.started("init", 2);
      thread.crash("the test said so");
      await waitFor(() => t.state("a") === "init/cancelled", "the end of a");
      expect(t.scheduler.pools.init.workers[0]?.recording.size).toBe(0);
    });
  });

  test("a cancel that races a verdict leaves no reward", async () => {
    await using t = setup();
    await t.scheduler.submit([submission("a")]);
    for (const stage of ["init", "run"] as const) {
      t.thread(stage).finish(((await t.started(stage, 1)) as [StartStage])[0]);
    }
    const [last] = (await t.started("eval", 1)) as [StartStage];
    const cancelled = t.scheduler.cancel("a");
    t.thread("eval").finish(last);
    await cancelled;
    await waitFor(() => t.state("a") === "eval/cancelled", "the cancel to win");
    expect(t.store.jobById("a")).toMatchObject({ reward: null, verdict: null });
  });

  test("a job that waits with a sandbox is final at once, and the sandbox is ended", async () => {
    await using t = setup({ backends: false });
    await t.scheduler.submit([submission("a", { sandbox: true })]);
    const [a] = (await t.started("init", 1)) as [StartStage];
    t.thread("init").finish(a, { handle: handle("a") });
    await waitFor(() => t.state("a") === "run/pending", "a to wait for RUN");
    expect(await t.scheduler.cancel("a")).toMatchObject({ state: "cancelled" });
    expect(t.ended).toEqual(["a"]);
  });

  test("cancelling is idempotent, and an unknown id is told apart", async () => {
    await using t = setup();
    await t.scheduler.submit([submission("a")]);
    const [a] = (await t.started("init", 1)) as [StartStage];
    await Promise.all([t.scheduler.cancel("a"), t.scheduler.cancel("a")]);
    t.thread("init").finish(a, { error: BROKEN });
    await waitFor(() => t.state("a") === "init/cancelled", "the end");
    expect(await t.scheduler.cancel("a")).toMatchObject({ state: "cancelled" });
    expect(await t.scheduler.cancel("nobody")).toBeNull();
    const cancels = t.thread("init").received.filter(({ type }) => type === "cancel");
    expect(cancels).toHaveLength(1);
  });

  test("a deadline ends a waiting job and asks for the end of an active one", async () => {
    await using t = setup({ slots: 1 });
    await t.scheduler.submit([submission("a"), submission("b", { totalMs: 50 })]);
    await t.started("init", 1);
    t.clock.ms += 60;
    await waitFor(() => t.state("b") === "init/failed", "b to be over");
    expect(JSON.parse(t.store.jobById("b")?.error ?? "")).toMatchObject({
      code: "deadline_exceeded",
      boundary: "service",
    });
    t.clock.ms += HOUR;
    await waitFor(() => t.thread("init").received.at(-1)?.type === "cancel", "a to be asked");
    expect(t.state("a")).toBe("init/active");
  });

  test("a deadline of RUN waits for as long as the service holds its calls back, the total one does not", async () => {
    await using t = setup();
    const [a, b] = [submission("a", { sandbox: true }), submission("b", { sandbox: true })];
    for (const { job } of [a, b]) Object.assign(job.limits, { runMs: 100_000 });
    Object.assign(b.job.limits, { totalMs: 150_000 });
    await t.scheduler.submit([a, b]);
    for (const start of await t.started("init", 2)) {
      const { jobId } = start;
      t.thread("init").emit({ type: "sandbox_started", jobId, attempt: 1, handle: handle(jobId) });
      t.thread("init").finish(start, { handle: handle(jobId) });
    }
    await t.started("run", 2);
    const asked = () =>
      t.thread("run").received.flatMap((one) => (one.type === "cancel" ? [one.jobId] : []));
    t.waited.ms = 60_000;
    t.clock.ms += 149_000;
    // Both have worked for 89 seconds.
    await waitFor(() => t.waited.looks >= 4, "two looks at both");
    expect(asked()).toEqual([]);
    const end = async (id: string) => {
      const start = t
        .thread("run")
        .starts()
        .find(({ jobId }) => jobId === id) as StartStage;
      t.thread("run").finish(start, { error: BROKEN });
      await waitFor(() => t.state(id) === "run/failed", `the end of ${id}`);
    };
    t.clock.ms += 1_000;
    await waitFor(() => asked().includes("b"), "the total limit");
    await end("b");
    expect(asked()).toEqual(["b"]);
    t.clock.ms += 10_000;
    await waitFor(() => asked().includes("a"), "the limit of RUN");
    await end("a");
    const of = (id: string) => {
      const row = t.store.jobById(id);
      if (!row) throw new Error(id);
      return { error: JSON.parse(row.error ?? "null"), timings: toJob(row).timings.run };
    };
    expect(of("a")).toMatchObject({
      error: { code: "deadline_exceeded", message: expect.stringContaining("limit of 100000 ms") },
      timings: { queuedMs: 60_000, activeMs: 100_000 },
    });
    expect(of("b")).toMatchObject({
      error: { code: "deadline_exceeded", message: expect.stringContaining("150000 ms in total") },
      timings: { queuedMs: 60_000, activeMs: 90_000 },
    });
  });

  test("a worker that does not confirm loses its sandbox, then its thread; its other jobs start anew", async () => {
    await using t = setup();
    await t.scheduler.submit([submission("a"), submission("b")]);
    await t.started("init", 2);
    const first = t.thread("init");
    first.emit({ type: "sandbox_started", jobId: "a", attempt: 1, handle: handle("a") });
    await t.scheduler.cancel("a");
    t.clock.ms += 1100;
    await waitFor(() => t.killed.includes("a"), "the sandbox to be killed");
    expect(first.terminated).toBe(false);
    t.clock.ms += 1100;
    await waitFor(() => t.state("a") === "init/cancelled", "the jobs to be settled");
    expect(first.terminated).toBe(true);
    // The only attempt that it has is not used up: others were in the thread, and one of them was the reason.
    const again = (await t.started("init", 3))[2] as StartStage;
    expect([again.jobId, again.attempt]).toEqual(["b", 2]);
    t.thread("init").finish(again);
    await t.scheduler.submit([submission("c")]);
    await t.started("init", 4);
    const starts = t.thread("init").starts();
    expect(starts.map(({ jobId }) => jobId)).toEqual(["b", "c"]);
  });

  test("a thread that gives no sign of life at a deadline is called blocked, with its task kind; one that does is not", async () => {
    await using t = setup({ slots: 1 });
    const error = () => JSON.parse(t.store.jobById("a")?.error ?? "{}");
    await t.scheduler.submit([submission("a", { totalMs: 100_000 })]);
    await t.started("init", 1);
    t.clock.ms += 200_000;
    await waitFor(() => t.thread("init").received.some(({ type }) => type === "cancel"), "the end");
    t.clock.ms += 2200;
    await waitFor(() => t.state("a") === "init/failed", "the job to be settled");
    expect(error()).toMatchObject({
      ...{ code: "worker_unresponsive", boundary: "service" },
      message:
        "a thread of INIT is blocked, by code that computes without awaiting: no answer when it was asked to end a job; in it ran the task kind fake (/mine.ts)",
      details: { blocked: true, task_kinds: ["fake"] },
    });
    await t.scheduler.submit([submission("b", { totalMs: 100_000 })]);
    await t.started("init", 2);
    t.thread("init").onCancel = () => t.thread("init").emit({ type: "pong" });
    t.clock.ms += 200_000;
    await waitFor(() => t.thread("init").received.some(({ type }) => type === "cancel"), "the end");
    t.clock.ms += 2200;
    await waitFor(() => t.state("b") === "init/failed", "the job to be settled");
    expect(JSON.parse(t.store.jobById("b")?.error ?? "{}").code).toBe("deadline_exceeded");
  });

  test("a thread that crashes is replaced, and its jobs fail as the service's fault", async () => {
    await using t = setup();
    await t.scheduler.submit([submission("a")]);
    await t.started("init", 1);
    t.thread("init").crash("out of memory");
    await waitFor(() => t.state("a") === "init/failed", "the job to be settled");
    expect(JSON.parse(t.store.jobById("a")?.error ?? "")).toMatchObject({
      code: "worker_crashed",
      boundary: "service",
    });
    expect(t.threads.init).toHaveLength(2);
  });
});

describe("another attempt", () => {
  test("waits its time, and has nothing of what the failed one recorded", async () => {
    await using t = setup();
    await t.scheduler.submit([submission("a", { numAttempts: 2 })]);
    t.thread("init").finish(((await t.started("init", 1)) as [StartStage])[0]);
    const [run] = (await t.started("run", 1)) as [StartStage];
    t.thread("run").finish(run, { error: BROKEN, trajectory: "[1]" });
    await waitFor(() => t.state("a") === "init/pending", "the failure to be booked");
    expect(t.store.trajectory(1)).toBeNull();
    t.clock.ms += 200;
    // One sweep with the clock as it is shows that the job is not taken too early.
    await t.scheduler.submit([submission("b")]);
    expect((await t.started("init", 2)).map(({ jobId }) => jobId)).toEqual(["a", "b"]);
    t.clock.ms += 500;
    const again = (await t.started("init", 3))[2] as StartStage;
    expect([again.jobId, again.attempt]).toEqual(["a", 2]);
    t.thread("init").finish(again);
    const second = (await t.started("run", 2))[1] as StartStage;
    t.thread("run").finish(second, { trajectory: "[2]" });
    t.thread("eval").finish(((await t.started("eval", 1)) as [StartStage])[0]);
    await waitFor(() => t.state("a") === "eval/succeeded", "the end");
    expect(t.store.trajectory(1)).toEqual({ attempt: 2, record: "[2]" });
  });

  test("of EVAL begins with EVAL, and keeps what RUN recorded", async () => {
    await using t = setup();
    await t.scheduler.submit([submission("a", { numAttempts: 2, evalFromRecord: true })]);
    t.thread("init").finish(((await t.started("init", 1)) as [StartStage])[0]);
    const [run] = (await t.started("run", 1)) as [StartStage];
    t.thread("run").finish(run, { trajectory: "[1]", outcome: "{}" });
    t.thread("eval").finish(((await t.started("eval", 1)) as [StartStage])[0], { error: BROKEN });
    await waitFor(() => t.state("a") === "eval/pending", "the failure to be booked");
    t.clock.ms += 1000;
    const again = (await t.started("eval", 2))[1] as StartStage;
    expect([again.attempt, again.outcome]).toEqual([2, "{}"]);
    expect(t.store.trajectory(1)?.record).toBe("[1]");
  });

  test("a job that crashes its thread each time ends after its attempts", async () => {
    await using t = setup();
    await t.scheduler.submit([submission("poison", { numAttempts: 3 })]);
    for (let attempt = 1; attempt <= 3; attempt++) {
      await waitFor(() => t.thread("init").starts().length > 0, `attempt ${attempt}`);
      t.thread("init").crash("segmentation fault");
      await waitFor(() => t.state("poison") !== "init/active", "the crash to be booked");
      t.clock.ms += 60_000;
    }
    await waitFor(() => t.state("poison") === "init/failed", "the end");
    expect(JSON.parse(t.store.jobById("poison")?.error ?? "").code).toBe("worker_crashed");
  });
});

test("sandboxes that wait for EVAL are bounded: what is beyond is ended, and EVAL makes its own", async () => {
  await using t = setup({ slots: 2, ahead: 1 });
  const jobs = ["a", "b", "c", "d"].map((id) => submission(id, { evalFromRecord: true }));
  for (const stage of ["init", "run"] as const) {
    t.thread(stage).onStart = (start) => {
      const fresh = stage === "run" ? handle(`of ${start.jobId}`) : null;
      queueMicrotask(() => t.thread(stage).finish(start, { handle: fresh }));
    };
  }
  await t.scheduler.submit(jobs);
  await waitFor(() => jobs.every(({ job }) => t.state(job.id)?.startsWith("eval")), "all in EVAL");
  expect(t.ended).toHaveLength(1);
  for (const start of await t.started("eval", 2)) t.thread("eval").finish(start);
  const starts = await t.started("eval", 4);
  const given = starts.map((start) => start.handle?.id ?? null);
  expect(given.filter((id) => id === null)).toHaveLength(1);
  expect(t.ended).toEqual(
    ["a", "b", "c", "d"].map((id) => `of ${id}`).filter((id) => !given.includes(id)),
  );
});

test("a shutdown hands running jobs back, and the next service goes on with them", async () => {
  const t = setup();
  await t.scheduler.submit([submission("a"), submission("b"), submission("c")]);
  const [a] = (await t.started("init", 2)) as [StartStage];
  const drained = t.scheduler.drain(HOUR, Promise.resolve());
  expect(await t.scheduler.submit([submission("d")]).catch(({ code }) => code)).toBe(
    "shutting_down",
  );
  await waitFor(() => t.thread("init").received.at(-1)?.type === "cancel", "both to be asked");
  for (const start of t.thread("init").starts()) t.thread("init").finish(start, { error: BROKEN });
  expect(await drained).toEqual({ handedBack: 2 });
  expect(a.attempt).toBe(1);
  t.store[Symbol.dispose]();
  {
    using next = new Store(t.dir.path);
    expect(recoverJobs(next, t.clock, 2)).toEqual({ resumed: 0, ended: 0 });
    const { rows } = next.list({ after: 0, limit: 10, order: "submitted" });
    expect(rows.map(({ id, stage, state, attempt }) => [id, stage, state, attempt])).toEqual([
      ["a", "init", "pending", 2],
      ["b", "init", "pending", 2],
      ["c", "init", "pending", 1],
    ]);
  }
  t.dir[Symbol.dispose]();
});
