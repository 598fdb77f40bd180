import { expect, test } from "bun:test";
import { readlinkSync } from "node:fs";
import { Store } from "../../src/store/store.ts";
import { storeJob } from "../support/jobs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { testDisk } from "../support/test-disk.ts";

/** A disk whose answers come when the test says so. */
function slowDisk() {
  const calls: { fd: number; answer: (error: Error | null) => void }[] = [];
  return { calls, disk: testDisk((fd, answer) => calls.push({ fd, answer })) };
}

/** Which of these promises are settled by now. */
async function settled(promises: (Promise<void> | null)[]): Promise<boolean[]> {
  const done = promises.map(() => false);
  promises.forEach((promise, index) => {
    promise?.then(() => {
      done[index] = true;
    });
  });
  await new Promise((resolve) => setImmediate(resolve));
  return done;
}

test("a commit is durable when a sync is over that began behind it; one takes many along", async () => {
  using dir = tempDir();
  const { calls, disk } = slowDisk();
  using store = new Store(dir.path, false, disk);
  expect(store.durable()).toBeNull();
  storeJob(store, "first", []);
  const first = [store.durable(), store.durable()];
  storeJob(store, "second", []);
  const second = store.durable();
  storeJob(store, "third", []);
  const all = [...first, second, store.durable()];
  expect([calls.length, await settled(all)]).toEqual([1, [false, false, false, false]]);
  calls[0]?.answer(null);
  expect([await settled(all), calls.length]).toEqual([[true, true, false, false], 2]);
  calls[1]?.answer(null);
  expect([await settled(all), calls.length]).toEqual([[true, true, true, true], 2]);
  expect(store.durable()).toBeNull();
});

test("what is written outside a transaction counts as well", () => {
  using dir = tempDir();
  const { calls, disk } = slowDisk();
  using store = new Store(dir.path, false, disk);
  store.weights.add({ version: "v1", announced_ms: 1 });
  expect([store.durable() !== null, calls.length]).toEqual([true, 1]);
});

test("the file that is synced is the log that SQLite writes, also after it began anew", async () => {
  using dir = tempDir();
  const { calls, disk } = slowDisk();
  using store = new Store(dir.path, false, disk);
  const instance = JSON.stringify({ text: "x".repeat(100_000) });
  // More than the log holds before it is folded into the database.
  for (let index = 0; index < 100; index++) storeJob(store, `job-${index}`, [], { instance });
  store.durable();
  const path = readlinkSync(`/proc/self/fd/${calls[0]?.fd}`);
  expect(path).toBe(dir.file("rolloutd.db-wal"));
});

test("after a sync that failed nothing is durable any more", async () => {
  using dir = tempDir();
  const { calls, disk } = slowDisk();
  using store = new Store(dir.path, false, disk);
  storeJob(store, "lost", []);
  const lost = store.durable();
  storeJob(store, "behind", []);
  const behind = store.durable();
  calls[0]?.answer(new Error("EIO"));
  const reasons = await Promise.allSettled([lost, behind, store.durable()]);
  expect(reasons.map((one) => one.status)).toEqual(["rejected", "rejected", "rejected"]);
  storeJob(store, "later", []);
  expect((await Promise.allSettled([store.durable()]))[0]?.status).toBe("rejected");
  expect(calls.length).toBe(1);
});

test("the disk is really asked", async () => {
  using dir = tempDir();
  using store = new Store(dir.path);
  storeJob(store, "one", []);
  await store.durable();
  expect(store.durable()).toBeNull();
});

test("where no thread comes to it in time the disk is asked here, until one does", async () => {
  using dir = tempDir();
  const { calls, disk } = slowDisk();
  const here: number[] = [];
  const busy = { ...disk, syncNow: (fd: number) => here.push(fd), patienceMs: 1 };
  using store = new Store(dir.path, false, busy);
  storeJob(store, "a", []);
  await store.durable();
  storeJob(store, "b", []);
  await store.durable();
  expect([calls.length, here.length, store.durable()]).toEqual([1, 2, null]);
  calls[0]?.answer(null);
  storeJob(store, "c", []);
  const last = store.durable();
  expect(calls.length).toBe(2);
  calls[1]?.answer(null);
  await last;
  expect(here.length).toBe(2);
});

test("an error that a thread tells late is not lost", async () => {
  using dir = tempDir();
  const { calls, disk } = slowDisk();
  using store = new Store(dir.path, false, { ...disk, syncNow: () => {}, patienceMs: 1 });
  storeJob(store, "a", []);
  await store.durable();
  calls[0]?.answer(new Error("EIO"));
  expect((await Promise.allSettled([store.durable()]))[0]?.status).toBe("rejected");
});
