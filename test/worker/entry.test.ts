import { expect, test } from "bun:test";
import type { FromWorker, ToWorker } from "../../src/pipeline/messages.ts";
import { waitFor } from "../support/wait-for.ts";
import { finishedOf, SETTINGS, startOf } from "./setup.ts";

function setup() {
  const worker = new Worker(new URL("../../src/worker/entry.ts", import.meta.url));
  const batches: FromWorker[][] = [];
  let broken: string | undefined;
  worker.onmessage = ({ data }: MessageEvent<FromWorker[]>) => batches.push(data);
  worker.onerror = ({ message }) => {
    broken = message;
  };
  const post = (...messages: ToWorker[]) => worker.postMessage(messages);
  post({ type: "setup", settings: SETTINGS });
  return {
    post,
    batches,
    events: (count: number) =>
      waitFor(() => {
        if (broken !== undefined) throw new Error(broken);
        return batches.flat().length >= count && batches.flat();
      }, `${count} events`),
    [Symbol.dispose]: () => worker.terminate(),
  };
}

function echo(jobId: string, runMs: number, attempt = 1) {
  const instance = JSON.stringify({ data_source: "echo", run_ms: runMs });
  return startOf("run", { jobId, attempt, taskKind: "echo", instance, handle: null });
}

const DONE = JSON.stringify({ stop_reason: "done", final_message: null, turns: 0 });
const CANCELLED = {
  code: "cancelled",
  message: "no",
  boundary: "client",
  retryable: false,
} as const;

test("a thread says that it is ready, and answers the stages of many jobs in few messages", async () => {
  using t = setup();
  const ids = Array.from({ length: 50 }, (_, index) => `job-${index}`);
  t.post(...ids.map((id) => echo(id, 0)));
  const events = await t.events(51);
  const answers = ids.map((jobId) => ({ ...finishedOf("run"), jobId, outcome: DONE }));
  expect(events).toEqual([{ type: "ready" }, ...answers]);
  expect(t.batches.length).toBeLessThan(10);
});

test("a cancel ends that attempt of that job, and no other", async () => {
  using t = setup();
  t.post(echo("a", 600_000, 2), echo("b", 600_000, 2));
  t.post({ type: "cancel", jobId: "a", attempt: 1, reason: CANCELLED });
  t.post({ type: "cancel", jobId: "unknown", attempt: 1, reason: CANCELLED });
  t.post({ type: "cancel", jobId: "b", attempt: 2, reason: CANCELLED });
  t.post(echo("c", 0));
  const events = await t.events(3);
  expect(new Set(events.slice(1))).toEqual(
    new Set([
      { ...finishedOf("run"), jobId: "b", attempt: 2, error: CANCELLED },
      { ...finishedOf("run"), jobId: "c", outcome: DONE },
    ]),
  );
});

test("cancelled rollouts give their slots back together, before any of their records is written", async () => {
  using t = setup();
  const ids = ["a", "b", "c"];
  t.post(
    ...ids.map((jobId) => startOf("run", { jobId, handle: null, options: '{"tokens":"off"}' })),
  );
  // No call gets leave, so all wait for that.
  await t.events(4);
  const before = t.batches.length;
  t.post(
    ...ids.map((jobId) => ({ type: "cancel", jobId, attempt: 1, reason: CANCELLED }) as const),
  );
  await t.events(10);
  const [freed, ...records] = t.batches.slice(before);
  const typesOf = (events: FromWorker[] = []) => events.map(({ type }) => type);
  expect(typesOf(freed)).toEqual(["slot_freed", "slot_freed", "slot_freed"]);
  expect(typesOf(records.flat())).toEqual(["stage_finished", "stage_finished", "stage_finished"]);
});
