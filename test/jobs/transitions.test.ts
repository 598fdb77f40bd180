import { describe, expect, test } from "bun:test";
import { errorBodyOf } from "../../src/errors.ts";
import { createJob, isFinal, isPaused, type Job, NEVER_MS } from "../../src/jobs/job.ts";
import { type JobEvent, transition } from "../../src/jobs/transitions.ts";

const LIMITS = { initMs: 100, runMs: 200, evalMs: 300, totalMs: 10_000 };
const BROKEN = {
  code: "sandbox_died",
  message: "gone",
  boundary: "sandbox",
  retryable: true,
} as const;

function newJob(evalFromRecord = false): Job {
  return createJob({ id: "j", limits: LIMITS, numAttempts: 1, evalFromRecord }, 1000);
}

/** Applies events one after the other, 10 ms apart. */
function apply(job: Job, ...events: JobEvent[]): Job {
  let nowMs = 1000;
  return events.reduce((next, event) => {
    nowMs += 10;
    return transition(next, event, nowMs);
  }, job);
}

function after(...events: JobEvent[]): Job {
  return apply(newJob(), ...events);
}

const started: JobEvent = { type: "stage_started" };
const succeeded: JobEvent = { type: "stage_succeeded" };
const failed: JobEvent = { type: "stage_failed", error: BROKEN };
const cancel: JobEvent = { type: "end_requested", ending: "cancel" };
const recovered = (alone = true): JobEvent => ({ type: "recovered", maxCrashes: 2, alone });

describe("a job", () => {
  test("goes through init, run and eval, and then has succeeded", () => {
    const job = after(started, succeeded, started, succeeded, started, succeeded);
    expect(job).toEqual({
      ...newJob(),
      stage: "eval",
      state: "succeeded",
      sinceMs: 1060,
      timings: {
        init: { queuedMs: 10, activeMs: 10 },
        run: { queuedMs: 10, activeMs: 10 },
        eval: { queuedMs: 10, activeMs: 10 },
      },
      visits: [
        [1, "init", 1000, 1010, 1020],
        [1, "run", 1020, 1030, 1040],
        [1, "eval", 1040, 1050, 1060],
      ],
      finishedMs: 1060,
    });
  });

  test("that fails in a stage keeps the stage and the error", () => {
    const job = after(started, succeeded, started, failed);
    expect(job).toMatchObject({ stage: "run", state: "failed", error: BROKEN, finishedMs: 1040 });
  });

  test("has the stage's limit only while it is active, and never beyond its total limit", () => {
    expect(newJob().stageDeadlineMs).toBeNull();
    expect(after(started).stageDeadlineMs).toBe(1010 + LIMITS.initMs);
    expect(after(started, succeeded).stageDeadlineMs).toBeNull();
    const late = transition({ ...newJob(), sinceMs: 10_900 }, started, 10_950);
    expect(late.stageDeadlineMs).toBe(11_000);
  });

  test("counts time in a queue apart from time at work", () => {
    const job = transition(transition(newJob(), started, 6000), succeeded, 6007);
    expect(job.timings.init).toEqual({ queuedMs: 5000, activeMs: 7 });
  });
});

describe("what the service holds back", () => {
  const heldBack = (ms: number): JobEvent => ({ type: "held_back", ms });
  const inRun = after(started, succeeded, started);

  test("is no work: the stage may last longer by as much, however often it is said", () => {
    const job = [30, 30, 50, 40].reduce((one, ms) => transition(one, heldBack(ms), 1100), inRun);
    expect(job.stageDeadlineMs).toBe(1030 + LIMITS.runMs + 50);
    expect(transition(job, succeeded, 1100)).toMatchObject({
      timings: { run: { queuedMs: 10 + 50, activeMs: 20 } },
      visits: [expect.anything(), [1, "run", 1020, 1030, 1100, 50]],
    });
  });

  test("takes nothing of the time for all work, and is none of what a paused one has spent", () => {
    const limits = { ...LIMITS, activeMs: 150 };
    const first = transition({ ...inRun, limits }, heldBack(60), 1100);
    const paused = transition(first, { type: "paused", alive: true }, 1130);
    const again = transition(
      transition(paused, { type: "continued", leftMs: 5_000 }, 2000),
      started,
      2000,
    );
    // Of 100 ms in RUN it has worked for 40, and for 10 in INIT.
    expect(again.stageDeadlineMs).toBe(2000 + 150 - 50);
  });

  test("ends with the total limit, which says so", () => {
    const job = transition(inRun, heldBack(50_000), 60_000);
    expect(job.stageDeadlineMs).toBe(job.deadlineMs);
    const over = transition(job, { type: "end_requested", ending: "deadline" }, 11_000);
    expect(transition(over, succeeded, 11_000).error?.message).toContain("10000 ms in total");
  });
});

describe("the end of a job", () => {
  test("a cancelled job that waits is final at once", () => {
    expect(after(cancel)).toMatchObject({ state: "cancelled", error: { code: "cancelled" } });
  });

  test("an active job stays active until its worker confirms", () => {
    const asked = after(started, cancel);
    expect(asked).toMatchObject({ state: "active", ending: "cancel" });
    expect(transition(asked, failed, 2000)).toMatchObject({ state: "cancelled" });
  });

  test("a cancel that races the end of a stage wins, whether it succeeded or failed", () => {
    expect(after(started, cancel, succeeded).state).toBe("cancelled");
    expect(after(started, cancel, failed).state).toBe("cancelled");
  });

  test("a cancel wins over a deadline that was there first, but not the other way round", () => {
    const deadline: JobEvent = { type: "end_requested", ending: "deadline" };
    expect(after(started, deadline, cancel).ending).toBe("cancel");
    expect(after(started, cancel, deadline).ending).toBe("cancel");
  });

  test("a deadline says whose time ran out: only RUN's is the policy's", () => {
    const deadline: JobEvent = { type: "end_requested", ending: "deadline" };
    const boundaryOf = (job: Job) => [job.error?.code, job.error?.boundary, job.error?.retryable];
    expect(boundaryOf(after(deadline))).toEqual(["deadline_exceeded", "service", true]);
    expect(boundaryOf(after(started, deadline, failed))).toEqual([
      "deadline_exceeded",
      "sandbox",
      true,
    ]);
    expect(boundaryOf(after(started, succeeded, started, deadline, failed))).toEqual([
      "deadline_exceeded",
      "policy",
      false,
    ]);
  });

  test("a shutdown hands an active job back to INIT as a new attempt and leaves a waiting one", () => {
    const shutdown: JobEvent = { type: "end_requested", ending: "shutdown" };
    expect(after(shutdown)).toEqual(newJob());
    expect(after(started, succeeded, started, shutdown, failed)).toMatchObject({
      stage: "init",
      state: "pending",
      attempt: 2,
      crashes: 0,
      ending: null,
    });
  });

  test("a final job is not changed by anything that is asked of it", () => {
    const done = after(cancel);
    expect(transition(done, cancel, 5000)).toBe(done);
    expect(transition(done, recovered(), 5000)).toBe(done);
    expect(() => transition(done, started, 5000)).toThrow("expected pending");
    expect(() => transition(done, succeeded, 5000)).toThrow("expected active");
  });
});

describe("another attempt", () => {
  const tried = (numAttempts: number, events: JobEvent[]) => {
    let nowMs = 1000;
    return events.reduce(
      (job, event) => {
        nowMs += 10;
        return transition(job, event, nowMs);
      },
      { ...newJob(), numAttempts },
    );
  };
  const inEval = [started, succeeded, started, succeeded, started];
  const deadline: JobEvent = { type: "end_requested", ending: "deadline" };

  test("follows a failure that is not the job's own, later each time, until there are none left", () => {
    const once = tried(3, [started, failed]);
    expect(once).toMatchObject({
      stage: "init",
      state: "pending",
      attempt: 2,
      error: null,
      failures: [{ attempt: 1, stage: "init", atMs: 1020, error: BROKEN }],
    });
    const waitMs = (job: Job) => (job.notBeforeMs as number) - job.sinceMs;
    expect(waitMs(once)).toBeWithin(250, 501);
    const twice = tried(3, [started, failed, started, succeeded, started, failed]);
    expect(twice.failures.map(({ attempt, stage }) => [attempt, stage])).toEqual([
      [1, "init"],
      [2, "run"],
    ]);
    expect(waitMs(twice)).toBeWithin(500, 1001);
    const over = tried(3, [started, failed, started, failed, started, failed]);
    expect(over).toMatchObject({ state: "failed", attempt: 3, error: BROKEN, notBeforeMs: null });
    expect(over.failures).toHaveLength(2);
  });

  test("does not follow what the policy did, or what stays wrong", () => {
    const own: JobEvent = { type: "stage_failed", error: { ...BROKEN, boundary: "policy" } };
    const wrong: JobEvent = { type: "stage_failed", error: { ...BROKEN, retryable: false } };
    expect(tried(3, [started, own]).state).toBe("failed");
    expect(tried(3, [started, wrong]).state).toBe("failed");
    expect(tried(3, [started, succeeded, started, deadline, failed]).state).toBe("failed");
  });

  test("does EVAL alone again where RUN's record stands", () => {
    const kept = apply({ ...newJob(true), numAttempts: 2 }, ...inEval, failed);
    expect(kept).toMatchObject({ stage: "eval", attempt: 2 });
    expect(tried(2, [...inEval, failed])).toMatchObject({ stage: "init", attempt: 2 });
  });

  test("follows a stage that took too long, but not a job that did", () => {
    expect(tried(2, [started, deadline, failed])).toMatchObject({ state: "pending", attempt: 2 });
    const late = { ...tried(2, [started, deadline]), stageDeadlineMs: 11_000 };
    expect(transition(late, failed, 11_001)).toMatchObject({ state: "failed" });
  });

  test("is not begun when its wait would go beyond the job's deadline", () => {
    const late = tried(2, [started]);
    expect(transition(late, failed, late.deadlineMs - 200).state).toBe("failed");
  });

  test("waits no longer after a restart, when the clock may be another one", () => {
    const waiting = tried(3, [started, failed]);
    expect(transition(waiting, recovered(), 9)).toEqual({ ...waiting, notBeforeMs: null });
  });
});

describe("recovery", () => {
  test("a job that was active goes back to INIT with a higher attempt", () => {
    expect(after(started, succeeded, started, recovered())).toMatchObject({
      stage: "init",
      state: "pending",
      attempt: 2,
      crashes: 1,
    });
  });

  test("a job that waited for INIT is as it was; one that waited for RUN lost its sandbox", () => {
    expect(after(recovered())).toEqual(newJob());
    expect(after(started, succeeded, recovered())).toMatchObject({
      stage: "init",
      state: "pending",
      attempt: 2,
      crashes: 0,
    });
  });

  test("a RUN that suffices for EVAL is not repeated, after a crash or a shutdown", () => {
    const shutdown: JobEvent = { type: "end_requested", ending: "shutdown" };
    const beforeEval = [started, succeeded, started, succeeded];
    for (const again of [[recovered()], [shutdown, failed]]) {
      const inEval = [...beforeEval, started, ...again];
      const expected = { stage: "eval", state: "pending", attempt: 2 };
      expect(apply(newJob(true), ...inEval)).toMatchObject(expected);
      expect(after(...inEval)).toMatchObject({ ...expected, stage: "init" });
    }
    const waiting = apply(newJob(true), ...beforeEval);
    expect(transition(waiting, recovered(), 5000)).toBe(waiting);
    expect(after(...beforeEval, recovered())).toMatchObject({ stage: "init", attempt: 2 });
  });

  test("a job that scores a recorded outcome again knows EVAL only", () => {
    const rescore = createJob(
      { id: "j", limits: LIMITS, numAttempts: 1, evalFromRecord: true, stage: "eval" },
      1,
    );
    expect(apply(rescore, started, recovered(), started, succeeded)).toMatchObject({
      stage: "eval",
      state: "succeeded",
    });
  });

  test("a job whose cancel was under way is cancelled", () => {
    expect(after(started, cancel, recovered()).state).toBe("cancelled");
  });

  test("a job that was active in too many crashes is given up", () => {
    const crash = [started, recovered()];
    expect(after(...crash, ...crash).state).toBe("pending");
    expect(after(...crash, ...crash, ...crash)).toMatchObject({
      state: "failed",
      crashes: 3,
      error: { code: "crash_limit" },
    });
  });

  test("a job that others were beside in each crash is not given up", () => {
    const crash = [started, recovered(false)];
    const suspected = after(...crash, ...crash, ...crash, ...crash);
    expect(suspected).toMatchObject({ state: "pending", attempt: 5, crashes: 4 });
    expect(apply(suspected, started, recovered())).toMatchObject({ state: "failed", crashes: 5 });
  });

  test("a thread that is lost with several jobs uses up no attempt of theirs", () => {
    const lost: JobEvent = { type: "thread_lost" };
    const job = after(started, lost, started, lost);
    expect(job).toMatchObject({ state: "pending", attempt: 3, crashes: 2, failures: [] });
    expect(after(started, cancel, lost).state).toBe("cancelled");
  });
});

test("a deadline says in which call the job hung, as its thread tells it", () => {
  const error = {
    ...errorBodyOf("deadline_exceeded", "a deadline passed"),
    details: { during: "the tool call execute_bash of turns[0] (sleep 9)", tool_call: { turn: 0 } },
  };
  const over: JobEvent = { type: "end_requested", ending: "deadline" };
  const ended = after(started, over, { type: "stage_failed", error });
  expect(ended.error?.message).toEndWith(
    "in INIT, during the tool call execute_bash of turns[0] (sleep 9)",
  );
  expect(ended.error?.details).toEqual(error.details);
});

test("a thread that was blocked is no deadline of the jobs in it", () => {
  const over: JobEvent = { type: "end_requested", ending: "deadline" };
  const error = { ...errorBodyOf("worker_unresponsive", "blocked"), details: { blocked: true } };
  expect(after(started, over, { type: "stage_failed", error }).error?.code).toBe(
    "worker_unresponsive",
  );
  expect(after(started, over, { type: "thread_lost", blocked: true })).toMatchObject({
    ...{ state: "pending", attempt: 2, crashes: 1, ending: null },
  });
  expect(after(started, over, { type: "thread_lost" }).error?.code).toBe("deadline_exceeded");
});

test("whatever happens, a job keeps its invariants", () => {
  const events: JobEvent[] = [
    started,
    succeeded,
    failed,
    cancel,
    { type: "end_requested", ending: "deadline" },
    { type: "end_requested", ending: "shutdown" },
    failed,
    recovered(),
    recovered(false),
    { type: "thread_lost" },
    { type: "paused", alive: true },
    { type: "paused", alive: false },
    { type: "continued", leftMs: 5000 },
  ];
  let seed = 7;
  const random = (below: number) => {
    seed = (seed * 1103515245 + 12345) % 2147483648;
    return seed % below;
  };
  for (let walk = 0; walk < 2000; walk++) {
    let job = { ...newJob(walk % 2 === 0), numAttempts: 1 + random(4) };
    let nowMs = 1000;
    for (let step = 0; step < 30; step++) {
      nowMs += random(50);
      const before = job;
      try {
        job = transition(job, events[random(events.length)] as JobEvent, nowMs);
      } catch {
        continue;
      }
      expect(job.state === "active").toBe(job.stageDeadlineMs !== null);
      expect(isFinal(job)).toBe(job.finishedMs !== null);
      expect(job.notBeforeMs === null || job.state === "pending").toBe(true);
      expect(job.failures.length).toBeLessThan(job.numAttempts);
      expect(job.state === "failed" || job.state === "cancelled").toBe(job.error !== null);
      expect(job.attempt).toBeGreaterThanOrEqual(before.attempt);
      if (isFinal(before)) expect(job).toBe(before);
      if (isPaused(job)) expect(job.deadlineMs).toBe(NEVER_MS);
      const { init, run, eval: evaluation } = job.timings;
      const booked = [init, run, evaluation].reduce((sum, t) => sum + t.queuedMs + t.activeMs, 0);
      expect(booked).toBeLessThanOrEqual(nowMs - job.createdMs);
      let lastMs = job.createdMs;
      for (const [, , queuedMs, startedMs, endedMs] of job.visits) {
        expect([lastMs, queuedMs, startedMs, endedMs ?? nowMs]).toEqual(
          [lastMs, queuedMs, startedMs, endedMs ?? nowMs].toSorted((a, b) => a - b),
        );
        lastMs = endedMs ?? startedMs;
      }
      const worked = job.visits.reduce((sum, [, , , from, to]) => sum + (to ?? from) - from, 0);
      expect(init.activeMs + run.activeMs + evaluation.activeMs).toBe(worked);
    }
  }
});
