import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { drizzle } from "drizzle-orm/bun-sqlite";
import { systemClock } from "../../src/lib/clock.ts";
import { Janitor } from "../../src/pipeline/janitor.ts";
import type { BatchChange } from "../../src/store/batch-store.ts";
import { GroupRetention } from "../../src/store/group-retention.ts";
import type { GroupChange } from "../../src/store/group-store.ts";
import { InstanceStore } from "../../src/store/instance-store.ts";
import { migrate } from "../../src/store/migrations.ts";
import { Store } from "../../src/store/store.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { CANCEL, STARTED, storeJob, TO_THE_END } from "../support/jobs.ts";
import { tempDir } from "../support/temp-dir.ts";

function setup({ carryMs = 0, ...sizes }: { ms: number; bytes: number; carryMs?: number }) {
  const dir = tempDir();
  const keep = { ...sizes, carryMs };
  let store = new Store(dir.path);
  const janitor = new Janitor({ store, clock: systemClock(), log: createLog("silent"), keep });
  return {
    get store() {
      return store;
    },
    janitor,
    fill(count: number) {
      store.transaction(() => {
        for (let i = 0; i < count; i++) {
          const labels = { step: "1" };
          const seq = storeJob(store, `j${i}`, [CANCEL], { instance: "x".repeat(5000), labels });
          store.saveTrajectory(seq, 1, "[]");
        }
      });
    },
    /** A batch, or null for a group by itself, with one group of one finished rollout. */
    group(id: string, batch: BatchChange | null, group: GroupChange) {
      const options = { id, body_sha256: "", options: "{}", closed: 1, source: null, series: null };
      const row = batch && store.batches.insert({ ...options, created_ms: 1 });
      if (row && batch) store.batches.update(row.seq, batch);
      const { seq } = store.groups.insert({
        ...{ id, bodySha256: "", instanceKey: "echo:1", instance: "{}" },
        ...{ template: "{}", rules: "{}", createdMs: 1 },
        batch: row && { seq: row.seq, position: 0 },
      });
      store.groups.update(seq, group);
      storeJob(store, id, TO_THE_END, { member: { groupSeq: seq, sample: 0 } });
      return { seq, batchSeq: row?.seq ?? 0 };
    },
    ids: () => store.list({ limit: 1000, after: 0, order: "submitted" }).rows.map(({ id }) => id),
    reopen() {
      store[Symbol.dispose]();
      store = new Store(dir.path);
    },
    [Symbol.dispose]() {
      janitor[Symbol.dispose]();
      store[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

test("what is too old goes, with all that belongs to it; unfinished jobs and the last position stay", () => {
  using t = setup({ ms: 1000, bytes: 1e12 });
  storeJob(t.store, "waiting", []);
  storeJob(t.store, "active", [STARTED]);
  t.fill(300);
  const cursor = t.store.finishedCursor;
  const oldest = t.store.jobById("j0")?.seq ?? 0;
  t.store.transaction(() => t.store.pastTurns.save(oldest, 1, "[]"));
  expect(t.store.pastTurns.of(oldest)).toEqual([{ attempt: 1, turns: "[]" }]);
  while (t.janitor.step()) {}
  expect(t.store.pastTurns.of(oldest)).toEqual([]);
  expect([t.ids(), t.janitor.removed]).toEqual([["waiting", "active", "j299"], 299]);
  expect(
    t.store.list({ labels: { step: "1" }, limit: 9, after: 0, order: "submitted" }).rows,
  ).toHaveLength(1);
  t.reopen();
  expect(t.store.finishedCursor).toBe(cursor);
});

test("above the size the oldest go until it fits, and their space is given back", () => {
  using t = setup({ ms: 1e15, bytes: 2_000_000 });
  t.fill(1000);
  const before = t.store.retention.usedBytes();
  while (t.janitor.step()) {}
  expect(before).toBeGreaterThan(4_000_000);
  expect(t.store.retention.usedBytes()).toBeLessThan(2_000_000);
  expect(t.ids().at(-1)).toBe("j999");
  expect(t.ids().length).toBeGreaterThan(100);
});

const INFORMATIVE: GroupChange = { state: "complete", informative: 1, finished_ms: 1 };
const OVER: BatchChange = { state: "complete", finished_ms: 1 };
const DELIVERED: GroupChange = { ...INFORMATIVE, delivered: 1 };

test("finished members of a group or batch that is under way or carried stay, however old", () => {
  using t = setup({ ms: 0, bytes: 1 });
  t.group("alone-running", null, { state: "running" });
  t.group("batch-running", { state: "running" }, { state: "running" });
  t.group("undelivered", { state: "running" }, INFORMATIVE);
  t.group("delivered", { state: "running" }, DELIVERED);
  t.group("kept", OVER, { state: "running" });
  t.group("parked", OVER, { state: "carried" });
  t.group("alone-over", null, INFORMATIVE);
  t.group("batch-over", OVER, DELIVERED);
  storeJob(t.store, "last", [CANCEL]);
  while (t.janitor.step()) {}
  const under = ["alone-running", "batch-running", "undelivered", "delivered"];
  expect(t.ids()).toEqual([...under, "kept", "parked", "last"]);
});

test("a surplus group stays whole as long as another batch may begin with it, and then is no batch's", () => {
  using t = setup({ ms: 0, bytes: 1, carryMs: 1e15 });
  const { seq, batchSeq } = t.group("surplus", OVER, INFORMATIVE);
  storeJob(t.store, "last", [CANCEL]);
  while (t.janitor.step()) {}
  expect(t.ids()).toEqual(["surplus", "last"]);
  t.store.retention.remove(Date.now(), 1, 10);
  t.store.batches.adopt(batchSeq, batchSeq + 1);
  expect([t.ids(), t.store.groups.bySeq(seq)?.batch_seq]).toEqual([["last"], null]);
});

test("groups and batches go with their last rollout, and with the events of their ends; what is needed stays", () => {
  using t = setup({ ms: 0, bytes: 1, carryMs: 1e15 });
  const end = (id: string) => {
    const group = t.store.groups.byId(id);
    const batch = t.store.batches.byId(id);
    if (group) t.store.groupEvents.groupEnded(group, "complete");
    if (batch) t.store.groupEvents.batchEnded(batch);
  };
  const batches = () => t.store.batches.list({ limit: 100, after: 0 }).map(({ id }) => id);
  const groups = () => t.store.groups.list({ limit: 100, after: 0 }).map(({ id }) => id);
  t.group("over", { ...OVER, finished_ms: 1 }, DELIVERED);
  t.group("alone", null, INFORMATIVE);
  t.group("running", { state: "running" }, DELIVERED);
  t.group("carried", { state: "complete", finished_ms: Date.now() }, { state: "carried" });
  t.group("surplus", { state: "complete", finished_ms: Date.now() }, INFORMATIVE);
  for (const id of ["over", "alone"]) end(id);
  storeJob(t.store, "last", [CANCEL]);
  expect(t.store.groupEvents.after(0, 10)).toHaveLength(3);
  // The batch of what is carried ended after this moment.
  const carriedMs = Date.now() - 60_000;
  const step = () =>
    t.store.retention.remove(Date.now(), carriedMs, 10) +
    t.store.groupRetention.remove(Date.now(), carriedMs, 10);
  while (step() > 0) {}
  const needed = ["running", "carried", "surplus"];
  expect([batches(), groups(), t.store.groupEvents.after(0, 10)]).toEqual([needed, needed, []]);
  t.reopen();
  expect(groups()).toEqual(needed);
});

test("of the instances those stay that were met last", () => {
  using db = new Database(":memory:");
  migrate(db);
  const instances = new InstanceStore(drizzle(db));
  for (let at = 0; at < 5; at++) {
    const experience = { dataSource: "echo", informative: true, rewards: [1], tokens: 1 };
    instances.learn({ ...experience, key: `echo:${at}`, nowMs: 10 - at });
  }
  new GroupRetention(db, 3).remove(0, 0, 10);
  const keys = instances.list({ after: "", limit: 10 }).map(({ key }) => key);
  expect(keys).toEqual(["echo:0", "echo:1", "echo:2"]);
});

test("what a batch has handed over stays known when its rollouts are gone, and goes with the batch", () => {
  using t = setup({ ms: 1000, bytes: 1e12, carryMs: 1e15 });
  const over = { state: "complete", finished_ms: 5 } as const;
  const { seq, batchSeq } = t.group("a", over, {
    ...{ state: "complete", informative: 1, delivered: 1, finished_ms: 4 },
  });
  storeJob(t.store, "later", TO_THE_END, {});
  const told = [{ group: "a", rewards: [0.5], rollouts: ["a"] }];
  expect(t.store.remains.handedOver(batchSeq)).toEqual(told);
  while (t.janitor.step()) {}
  expect([t.ids(), t.store.groups.byId("a")?.state]).toEqual([["later"], "complete"]);
  expect(t.store.remains.handedOver(batchSeq)).toEqual(told);
  expect(t.store.remains.ofGroup(seq)).toMatchObject([{ sample: 0, id: "a", reward: 0.5 }]);
  t.store.transaction(() => t.store.groupRetention.remove(10, 10, 100));
  expect([t.store.groups.byId("a"), t.store.remains.ofGroup(seq)]).toEqual([null, []]);
});
