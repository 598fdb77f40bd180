import { expect, test } from "bun:test";
import { cpSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Store } from "../../src/store/store.ts";
import { storeJob } from "../support/jobs.ts";
import { randomFrom } from "../support/random.ts";
import { tempDir } from "../support/temp-dir.ts";
import { testDisk } from "../support/test-disk.ts";

const PAGE_BYTES = 4096;
const [DATABASE, LOG] = ["rolloutd.db", "rolloutd.db-wal"];
const INSTANCE = JSON.stringify({ text: "x".repeat(20_000) });

/** A disk whose answers come when the test says so; each call is named by its file. */
function slowDisk() {
  const calls: { file: string; answer: (error: Error | null) => void }[] = [];
  const here: string[] = [];
  const nameOf = (fd: number) => readlinkSync(`/proc/self/fd/${fd}`).split("/").at(-1) as string;
  const disk = testDisk((fd, answer) => calls.push({ file: nameOf(fd), answer }));
  return { calls, here, disk: { ...disk, syncNow: (fd: number) => void here.push(nameOf(fd)) } };
}

let stored = 0;

/** More jobs than the log holds before it is folded. */
function fill(store: Store): void {
  for (let count = 0; count < 250; count++)
    storeJob(store, `job-${++stored}`, [], { instance: INSTANCE });
}

/** A store whose log is long and synced, and nothing asks the disk. */
async function longLog(folder: string) {
  const slow = slowDisk();
  const store = new Store(folder, false, slow.disk);
  fill(store);
  const durable = store.durable();
  slow.calls.pop()?.answer(null);
  await durable;
  return { ...slow, store };
}

/** All jobs of a copy of the folder, whose files are sound. */
function jobsIn(folder: string): number {
  using store = new Store(folder);
  return store.list({ order: "submitted", after: 0, limit: 1000 }).rows.length;
}

test("a long log is synced, copied, and the database synced after it; writes wait for that, answers do not", async () => {
  using dir = tempDir();
  const { calls, store } = await longLog(dir.path);
  using _ = store;
  const size = () => readFileSync(dir.file(DATABASE)).length;
  const before = size();
  const folded = store.settled();
  expect([calls.map(({ file }) => file), size() === before]).toEqual([[LOG], true]);
  calls[0]?.answer(null);
  expect([calls.map(({ file }) => file), size() > before]).toEqual([[LOG, DATABASE], true]);
  expect([store.settled(), store.durable()]).toEqual([folded, null]);
  calls[1]?.answer(null);
  await folded;
  expect(store.settled()).toBeNull();
  storeJob(store, `job-${++stored}`, []);
  expect(store.settled()).toBeNull();
});

test("a short log is left alone", () => {
  using dir = tempDir();
  const { calls, disk } = slowDisk();
  using store = new Store(dir.path, false, disk);
  storeJob(store, "one", []);
  expect([store.settled(), calls.length]).toEqual([null, 0]);
});

test("a write that can't wait leaves the log as it is until the disk has the database", async () => {
  using dir = tempDir();
  const { calls, here, store } = await longLog(dir.path);
  using _ = store;
  const folded = store.settled();
  store.transaction(() => store.weights.add({ version: "v1", announced_ms: 1 }));
  // Nothing was copied yet, so nothing is to be synced.
  await folded;
  expect(here).toEqual([]);
  calls[0]?.answer(null);
  expect(calls.length).toBe(1);
  const again = store.settled();
  calls[1]?.answer(null);
  const log = readFileSync(dir.file(LOG));
  store.shrink();
  expect([here, calls[2]?.file]).toEqual([[DATABASE], DATABASE]);
  await again;
  storeJob(store, `job-${++stored}`, []);
  expect(readFileSync(dir.file(LOG)).equals(log)).toBe(false);
  calls[2]?.answer(null);
});

test("a write that does not ask is found out", async () => {
  using dir = tempDir();
  const { calls, store } = await longLog(dir.path);
  using _ = store;
  const folded = store.settled();
  calls[0]?.answer(null);
  store.weights.add({ version: "v1", announced_ms: 1 });
  calls[1]?.answer(null);
  expect((await Promise.allSettled([folded]))[0]?.status).toBe("rejected");
});

test("a disk that fails is told to who waits, and nothing is written any more", async () => {
  using dir = tempDir();
  const { calls, store } = await longLog(dir.path);
  using _ = store;
  const folded = store.settled();
  calls[0]?.answer(null);
  calls[1]?.answer(new Error("EIO"));
  expect((await Promise.allSettled([folded]))[0]?.status).toBe("rejected");
  fill(store);
  expect((await Promise.allSettled([store.settled()]))[0]?.status).toBe("rejected");
});

test("P1: a power cut at any point of a fold, with any pages on the disk, loses nothing", async () => {
  const random = randomFrom(20261122);
  using dir = tempDir();
  using copies = tempDir();
  const { calls, store } = await longLog(dir.path);
  using _ = store;
  const files = () => ({
    database: readFileSync(dir.file(DATABASE)),
    log: readFileSync(dir.file(LOG)),
  });
  const before = files();
  const folded = store.settled();
  calls[0]?.answer(null);
  const during = files();
  expect(during.log.equals(before.log)).toBe(true);
  for (let cut = 0; cut < 10; cut++) {
    const folder = copies.file(`cut-${cut}`);
    cpSync(dir.path, folder, { recursive: true });
    const disk = Buffer.from(during.database);
    for (let at = 0; at < disk.length; at += PAGE_BYTES) {
      if (random() < 0.5) continue;
      const old = before.database.subarray(at, at + PAGE_BYTES);
      disk.fill(0, at, at + PAGE_BYTES);
      old.copy(disk, at);
    }
    writeFileSync(join(folder, DATABASE), disk);
    expect(jobsIn(folder)).toBe(250);
  }
  calls[1]?.answer(null);
  await folded;
});

test("where nobody asks for it SQLite bounds the log by itself", () => {
  using dir = tempDir();
  using store = new Store(dir.path);
  for (let round = 0; round < 8; round++) fill(store);
  expect(readFileSync(dir.file(LOG)).length).toBeLessThan(4200 * (PAGE_BYTES + 24));
});
