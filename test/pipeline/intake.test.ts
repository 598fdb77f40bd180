import { expect, test } from "bun:test";
import { Intake } from "../../src/pipeline/intake.ts";
import type { Submission } from "../../src/pipeline/parts.ts";
import { Store } from "../../src/store/store.ts";
import { failureOf } from "../support/failure.ts";
import { LIMITS, ROW } from "../support/jobs.ts";
import { tempDir } from "../support/temp-dir.ts";

/** An intake whose tick comes when the test says so. */
function setup(maxQueuedJobs = 100) {
  const dir = tempDir();
  const store = new Store(dir.path);
  const ticks: (() => void)[] = [];
  const told: string[] = [];
  const intake = new Intake({
    store,
    clock: { nowMs: () => 1000 },
    settings: { maxQueuedJobs } as never,
    closed: () => false,
    joined: () => {},
    tell: ({ id }) => told.push(id),
    operate: (work) =>
      new Promise((resolve, reject) => {
        ticks.push(() => {
          try {
            resolve(store.transaction(work));
          } catch (error) {
            reject(error);
          }
        });
      }),
  });
  return {
    ...{ store, intake, told },
    tick: () => {
      for (const tick of ticks.splice(0)) tick();
    },
    waiting: () => ticks.length,
    [Symbol.dispose]() {
      store[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

function rollout(id: string, body = "same"): Submission {
  return { job: { id, limits: LIMITS, numAttempts: 1 }, row: { ...ROW, bodySha256: body } };
}

test("requests of one tick are taken on together, and one that is refused costs the others nothing", async () => {
  using t = setup();
  const first = t.intake.submit([rollout("a"), rollout("b")]);
  const again = t.intake.submit([rollout("b"), rollout("b")]);
  const conflict = failureOf(() => t.intake.submit([rollout("c"), rollout("a", "other")]));
  const behind = t.intake.submit([rollout("c", "its own"), rollout("d")]);
  expect(t.waiting()).toBe(1);
  t.tick();
  const created = (await Promise.all([first, again, behind])).map((accepted) =>
    accepted.map((one) => [one.id, one.created]),
  );
  expect(created).toEqual([
    [
      ["a", true],
      ["b", true],
    ],
    [
      ["b", false],
      ["b", false],
    ],
    [
      ["c", true],
      ["d", true],
    ],
  ]);
  expect(await conflict).toMatchObject({ code: "id_conflict" });
  expect(t.told).toEqual(["a", "b", "c", "d"]);
  expect(t.store.submissionOf("c")?.sha256).toBe("its own");
});

test("what is taken on before in the same tick counts for the queue's limit", async () => {
  using t = setup(3);
  const fits = t.intake.submit([rollout("a"), rollout("b")]);
  const full = failureOf(() => t.intake.submit([rollout("c"), rollout("d")]));
  const last = t.intake.submit([rollout("e")]);
  t.tick();
  expect([(await fits).length, (await last).length]).toEqual([2, 1]);
  expect(await full).toMatchObject({ code: "queue_full" });
  expect(t.store.counts.total).toBe(3);
});

test("a tick that fails refuses all of its requests, and the next one works again", async () => {
  using t = setup();
  // Two of the same id can't be written; that they are not recognised is a bug, as `madeId` here.
  const bad = [
    { ...rollout("a"), madeId: true },
    { ...rollout("a"), madeId: true },
  ];
  const failed = Promise.allSettled([t.intake.submit(bad), t.intake.submit([rollout("b")])]);
  t.tick();
  expect((await failed).map(({ status }) => status)).toEqual(["rejected", "rejected"]);
  const next = t.intake.submit([rollout("b")]);
  t.tick();
  expect((await next)[0]?.created).toBe(true);
});
