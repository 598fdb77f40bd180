import { expect, test } from "bun:test";
import { Heartbeat } from "../../src/pipeline/heartbeat.ts";
import { Pool, type PoolWorker } from "../../src/pipeline/pool.ts";
import { FakeThread } from "../support/fake-thread.ts";
import { waitFor } from "../support/wait-for.ts";

test("a thread that answers no ping is replaced, one that answers is not", async () => {
  const threads: FakeThread[] = [];
  const pool = new Pool({
    ...{ stage: "run", threads: 2, slots: 4 },
    spawn: () => {
      const thread = new FakeThread();
      threads.push(thread);
      return thread;
    },
    onEvents: (events) => expect(events).toEqual([]),
    onCrash: () => {},
  });
  const answering = threads[1] as FakeThread;
  const post = answering.post.bind(answering);
  answering.post = (messages) => {
    post(messages);
    if (messages.some(({ type }) => type === "ping")) answering.emit({ type: "pong" });
  };
  const stuck: PoolWorker[] = [];
  using _heartbeat = new Heartbeat([pool], 40, (worker) => {
    stuck.push(worker);
    pool.respawn(worker);
  });
  await waitFor(() => stuck.length === 1, "the silent thread to be found");
  expect([threads[0]?.terminated, answering.terminated, threads.length]).toEqual([true, false, 3]);
});
