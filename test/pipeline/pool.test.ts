import { describe, expect, test } from "bun:test";
import type { FromWorker, StartStage } from "../../src/pipeline/messages.ts";
import { Pool, type PoolWorker } from "../../src/pipeline/pool.ts";
import { FakeThread } from "../support/fake-thread.ts";

function setup({ threads = 2, slots = 5 } = {}) {
  const spawned: FakeThread[] = [];
  const events: FromWorker[] = [];
  const crashes: [worker: PoolWorker, reason: string][] = [];
  const pool = new Pool({
    stage: "run",
    threads,
    slots,
    spawn: () => {
      const thread = new FakeThread();
      spawned.push(thread);
      return thread;
    },
    onEvents: (batch) => events.push(...batch),
    onCrash: (worker, reason) => crashes.push([worker, reason]),
  });
  const [first, second] = pool.workers as [PoolWorker, PoolWorker];
  return { pool, spawned, events, crashes, first, second };
}

function start(jobId: string): StartStage {
  return {
    type: "start",
    jobId,
    attempt: 1,
    stage: "run",
    limitMs: 60_000,
    leftMs: 60_000,
    taskKind: "fake",
    instance: "{}",
    options: "{}",
    handle: null,
    warm: null,
    backend: null,
    outcome: null,
    allowance: null,
    record: null,
  };
}

describe("slots", () => {
  test("are shared by all threads of the pool, and a job takes one until it leaves", () => {
    const { pool } = setup({ slots: 3 });
    expect(pool.freeSlots()).toBe(3);
    const worker = pool.start(start("a"));
    pool.start(start("b"));
    expect(pool.freeSlots()).toBe(1);
    worker.jobIds.delete("a");
    expect(pool.freeSlots()).toBe(2);
  });

  test("are taken in the thread that has the fewest jobs", () => {
    const { pool, first, second } = setup();
    for (const id of ["a", "b", "c"]) pool.start(start(id));
    expect([[...first.jobIds], [...second.jobIds]]).toEqual([["a", "c"], ["b"]]);
    first.jobIds.clear();
    pool.start(start("d"));
    expect([[...first.jobIds], [...second.jobIds]]).toEqual([["d"], ["b"]]);
  });
});

describe("messages", () => {
  test("leave with the flush, all for one thread at once and each once only", () => {
    const { pool, spawned } = setup();
    const posted: number[][] = [[], []];
    for (const [index, thread] of spawned.entries()) {
      const post = thread.post.bind(thread);
      thread.post = (messages) => {
        posted[index]?.push(messages.length);
        post(messages);
      };
    }
    for (const id of ["a", "b", "c"]) pool.start(start(id));
    expect(posted).toEqual([[], []]);
    pool.flush();
    pool.flush();
    expect(posted).toEqual([[2], [1]]);
    expect(spawned[0]?.starts().map(({ jobId }) => jobId)).toEqual(["a", "c"]);
  });

  test("of every thread are heard", () => {
    const { spawned, events } = setup();
    for (const thread of spawned) thread.emit({ type: "ready" });
    expect(events).toEqual([{ type: "ready" }, { type: "ready" }]);
  });
});

describe("a thread that crashed", () => {
  test("is told of, and what takes its place starts empty", () => {
    const { pool, spawned, crashes, first } = setup();
    pool.start(start("a"));
    spawned[0]?.crash("out of memory");
    expect(crashes).toEqual([[first, "out of memory"]]);
    pool.respawn(first);
    expect([spawned.length, spawned[0]?.terminated, [...first.jobIds]]).toEqual([3, true, []]);
    // What was meant for the old thread does not reach the new one.
    pool.flush();
    expect(spawned[2]?.received).toEqual([]);
    pool.start(start("b"));
    pool.flush();
    expect(spawned[2]?.starts().map(({ jobId }) => jobId)).toEqual(["b"]);
  });

  test("is heard no more once it was replaced, but the new one is", () => {
    const { pool, spawned, crashes, events, first } = setup();
    pool.respawn(first);
    spawned[0]?.crash("the thread ended");
    expect(crashes).toEqual([]);
    spawned[2]?.emit({ type: "ready" });
    spawned[2]?.crash("again");
    expect([events, crashes]).toEqual([[{ type: "ready" }], [[first, "again"]]]);
  });
});

test("a pool that was dismissed ends its threads, and their ends are no crashes", () => {
  const { pool, spawned, crashes } = setup();
  pool.terminate();
  for (const thread of spawned) thread.crash("the thread ended");
  expect([spawned.map(({ terminated }) => terminated), crashes]).toEqual([[true, true], []]);
});
