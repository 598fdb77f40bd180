import { expect, test } from "bun:test";
import { Ticker } from "../../src/pipeline/ticker.ts";
import { Store } from "../../src/store/store.ts";
import { tempDir } from "../support/temp-dir.ts";

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
