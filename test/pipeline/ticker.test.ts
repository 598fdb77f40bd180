import { expect, test } from "bun:test";
import { Ticker } from "../../src/pipeline/ticker.ts";
import { Store } from "../../src/store/store.ts";
import { storeJob } from "../support/jobs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { testDisk } from "../support/test-disk.ts";

test("on a full disk what has happened waits to be booked, and is booked once there is room", async () => {
  using dir = tempDir();
  using store = new Store(dir.path);
  const asked: number[] = [];
  const ticker = new Ticker({
    store,
    room: {
      forWork: () => true,
      forTick: (bytes) => asked.push(bytes) > 2,
    },
    fillSlots: () => {},
    send: () => {},
    onFatal: (error) => {
      throw error;
    },
  });
  const done: string[] = [];
  ticker.enqueue(() => done.push("large"), 1000);
  const small = ticker.operate(() => done.push("small"));
  await small;
  expect(done).toEqual(["large", "small"]);
  // The first look may come before anything was asked for.
  expect(asked.slice(-2)).toEqual([1000, 1000]);
});

test("a data folder that is gone ends the service, and leaves nobody waiting for ever", async () => {
  using dir = tempDir();
  using store = new Store(dir.path);
  const gone = new Error("ENOENT");
  const fatal = Promise.withResolvers<unknown>();
  const ticker = new Ticker({
    store,
    room: {
      forWork: () => true,
      forTick: () => {
        throw gone;
      },
    },
    fillSlots: () => {},
    send: () => {},
    onFatal: fatal.resolve,
  });
  ticker.enqueue(() => {});
  expect(await fatal.promise).toBe(gone);
});

test("a disk that does not take a commit ends the service, and nothing more is written", async () => {
  using dir = tempDir();
  const broken = new Error("EIO");
  using store = new Store(
    dir.path,
    false,
    testDisk((_fd, done) => void setImmediate(() => done(broken))),
  );
  const fatal = Promise.withResolvers<unknown>();
  const ticker = new Ticker({
    store,
    fillSlots: () => {},
    send: () => {},
    onFatal: fatal.resolve,
  });
  await ticker.operate(() => storeJob(store, "a", []));
  expect(await ticker.operate(() => storeJob(store, "b", [])).catch((error) => error)).toBe(broken);
  expect([await fatal.promise, store.jobById("b")]).toEqual([broken, null]);
});

test("what comes while the disk works is one commit", async () => {
  using dir = tempDir();
  const disk: ((error: null) => void)[] = [];
  using store = new Store(
    dir.path,
    false,
    testDisk((_fd, done) => disk.push(done)),
  );
  let commits = 0;
  const ticker = new Ticker({
    store,
    fillSlots: () => {},
    send: () => commits++,
    onFatal: (error) => {
      throw error;
    },
  });
  const turn = () => new Promise((resolve) => setImmediate(resolve));
  await ticker.operate(() => store.weights.add({ version: "1", announced_ms: 1 }));
  const before = commits;
  const late = ["2", "3", "4"].map(async (version) => {
    await turn();
    return ticker.operate(() => store.weights.add({ version, announced_ms: 1 }));
  });
  for (let index = 0; index < 10; index++) await turn();
  expect(commits).toBe(before);
  for (const done of disk.splice(0)) done(null);
  await Promise.all(late);
  expect(commits).toBe(before + 1);
});

test("what each turn of the loop brings waits for what the next one brings, and not for ever", async () => {
  using dir = tempDir();
  using store = new Store(dir.path);
  const commits: number[] = [];
  let taken = 0;
  const ticker = new Ticker({
    store,
    fillSlots: () => {},
    send: () => commits.push(taken),
    onFatal: (error) => {
      throw error;
    },
  });
  await ticker.operate(() => {});
  commits.length = 0;
  const wave = async (left: number): Promise<void> => {
    const done = ticker.operate(() => taken++);
    if (left > 1) {
      await new Promise((resolve) => setImmediate(resolve));
      await wave(left - 1);
    }
    await done;
  };
  await wave(16);
  expect(commits).toEqual([16]);
  await wave(100);
  expect([commits.length > 3, commits.at(-1)]).toEqual([true, 116]);
});
