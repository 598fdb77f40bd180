import { expect, test } from "bun:test";
import { systemClock } from "../../src/lib/clock.ts";
import { Janitor } from "../../src/pipeline/janitor.ts";
import { Store } from "../../src/store/store.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { CANCEL, STARTED, storeJob } from "../support/jobs.ts";
import { tempDir } from "../support/temp-dir.ts";

function setup(keep: { ms: number; bytes: number }) {
  const dir = tempDir();
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
  while (t.janitor.step()) {}
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
