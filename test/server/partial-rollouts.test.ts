import { describe, expect, test } from "bun:test";
import { cpSync } from "node:fs";
import { groupService } from "../support/group-service.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

type Service = ReturnType<typeof groupService>;

const rows = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => ({
    data_source: "echo",
    instance_id: `row-${from + index}`,
  }));

/** Each rollout takes three turns, and two for one batch. */
const TURNS = 3;
const STEP = { num_samples: 2, goal: { groups: 1 }, series: "s", max_turns_per_batch: 2 };
const FIRST = { ...STEP, id: "b", instances: rows(1) };
const NEXT = { ...STEP, id: "n", instances: [] };

/** Lets a rollout go as far as it may. */
async function untilPaused(t: Service, jobId: string): Promise<void> {
  while ((await t.turn(jobId)) === "went") {}
  await waitFor(() => paused(t).includes(jobId), `${jobId} to be booked as paused`);
}

const paused = (t: Service) =>
  t.store
    .list({ order: "submitted", after: 0, limit: 100, states: ["pending"] })
    .rows.flatMap(({ seq, id }) => (t.scheduler.pauses.isPaused(seq) ? [id] : []));

const batchOf = async (t: Service, id: string) =>
  (await t.send("GET", `/v1/batches/${id}?wait_ms=20000`)).body;

describe("a rollout that has used up its turns", () => {
  test("waits in its thread without a slot, and goes on there in the next batch of the series", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path, { turns: TURNS, slots: 2 });
    await t.send("POST", "/v1/batches", FIRST);
    await untilPaused(t, "b-0-0");
    await untilPaused(t, "b-0-1");
    expect([t.scheduler.pauses.alive, t.scheduler.pools.run.freeSlots()]).toEqual([2, 2]);
    const over = await batchOf(t, "b");
    expect(over).toMatchObject({ state: "exhausted", delivered: 0, groups: { running: 1 } });
    expect(over.error.message).toContain("1 have used up what they may do for this batch");
    await t.send("POST", "/v1/batches", NEXT);
    for (const id of ["b-0-0", "b-0-1"]) expect(await t.turn(id)).toBe("went");
    await t.give("b-0-0", 1);
    await t.give("b-0-1", 0);
    const { body } = await t.send("GET", "/v1/batches/n/groups?trajectories=true&wait_ms=20000");
    expect(body.groups).toMatchObject([{ id: "b-0", rewards: [1, 0] }]);
    // All in one attempt: nothing was begun anew.
    for (const { trajectory } of body.groups[0].members)
      expect(trajectory).toEqual(Array(TURNS).fill("turn of attempt 1"));
  });

  test("waits with its record alone where as many wait in sandboxes as may, and begins with it", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path, { turns: TURNS, maxPausedAlive: 1 });
    await t.send("POST", "/v1/batches", FIRST);
    await untilPaused(t, "b-0-0");
    await untilPaused(t, "b-0-1");
    const { alive, parked } = t.scheduler.pauses;
    expect({ alive, parked }).toEqual({ alive: 1, parked: 1 });
    await waitFor(() => !t.playing.has("b-0-1"), "the thread to let go of it");
    await batchOf(t, "b");
    await t.send("POST", "/v1/batches", NEXT);
    for (const id of ["b-0-0", "b-0-1"]) expect(await t.turn(id)).toBe("went");
    await t.give("b-0-0", 1);
    await t.give("b-0-1", 0);
    const { body } = await t.send("GET", "/v1/batches/n/groups?trajectories=true&wait_ms=20000");
    const trajectories = body.groups[0].members.map(
      (one: { trajectory: string[] }) => one.trajectory,
    );
    const turn = (attempt: number) => `turn of attempt ${attempt}`;
    expect(trajectories).toEqual([
      [turn(1), turn(1), turn(1)],
      [turn(1), turn(1), turn(2)],
    ]);
    expect(t.scheduler.staleAnswers).toBe(0);
  });

  test("survives kill -9 while it waits and after it went on, each time with its turns", async () => {
    using folders = new DisposableStack();
    const folder = () => folders.use(tempDir()).path;
    let at = folder();
    let t = groupService(at, { turns: TURNS });
    const kill = async () => {
      const next = folder();
      cpSync(at, next, { recursive: true });
      await t[Symbol.asyncDispose]();
      at = next;
      t = groupService(at, { turns: TURNS });
    };
    await t.send("POST", "/v1/batches", FIRST);
    await untilPaused(t, "b-0-0");
    await untilPaused(t, "b-0-1");
    await kill();
    expect(paused(t)).toEqual(["b-0-0", "b-0-1"]);
    await batchOf(t, "b");
    await kill();
    await t.send("POST", "/v1/batches", NEXT);
    await waitFor(() => t.playing.has("b-0-1"), "it to go on");
    await kill();
    for (const id of ["b-0-0", "b-0-1"]) expect(await t.turn(id)).toBe("went");
    await t.give("b-0-0", 1);
    await t.give("b-0-1", 0);
    const { body } = await t.send("GET", "/v1/batches/n/groups?trajectories=true&wait_ms=20000");
    const [first] = body.groups[0].members;
    expect(first.trajectory.slice(0, 2)).toEqual(Array(2).fill("turn of attempt 1"));
    expect(first.trajectory).toHaveLength(TURNS);
    await waitFor(() => t.scheduler.unfinished === 0, "nothing to be left");
    await t[Symbol.asyncDispose]();
  });

  test("has no time limit while it waits, and afterwards what it had left", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path, { turns: TURNS });
    await t.send("POST", "/v1/batches", { ...FIRST, limits: { total_ms: 100_000 } });
    await untilPaused(t, "b-0-0");
    await untilPaused(t, "b-0-1");
    await batchOf(t, "b");
    await t.send("POST", "/v1/rollouts", {
      ...{ id: "short", instance: rows(1)[0], limits: { total_ms: 400_000 } },
    });
    t.clock.ms += 500_000;
    await waitFor(() => t.store.jobById("short")?.error, "the limits to be looked at");
    await t.send("POST", "/v1/batches", NEXT);
    const { deadline_ms = 0 } = t.store.jobById("b-0-0") ?? {};
    expect(deadline_ms - t.clock.ms).toBeWithin(50_000, 100_000);
    await t.turn("b-0-0");
    t.clock.ms += 200_000;
    const late = await waitFor(() => t.store.jobById("b-0-1")?.error, "the other to be late");
    expect(late).toContain("deadline_exceeded");
  });

  test("is given up with its batch, and when the next one is long in coming", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path, { turns: TURNS, carryLimitMs: 50 });
    await t.send("POST", "/v1/batches", FIRST);
    await untilPaused(t, "b-0-0");
    await untilPaused(t, "b-0-1");
    await waitFor(() => t.scheduler.unfinished === 0, "what waits to be ended");
    await waitFor(() => t.playing.size === 0, "the threads to let go of it");
    const { alive, parked } = t.scheduler.pauses;
    expect({ alive, parked }).toEqual({ alive: 0, parked: 0 });
  });

  test("is begun anew where it is too old for the next batch", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path, { turns: TURNS });
    await t.send("POST", "/v1/batches", FIRST);
    await untilPaused(t, "b-0-0");
    await untilPaused(t, "b-0-1");
    await batchOf(t, "b");
    t.announce();
    t.announce();
    await t.send("POST", "/v1/batches", { ...NEXT, max_staleness: 1, stale: "drop" });
    await waitFor(() => t.playing.has("b-0-1-r1"), "another in its place");
    await waitFor(() => !t.playing.has("b-0-1"), "the thread to let go of the old one");
  });
});

describe("a batch that parks what it leaves", () => {
  test("has each rollout wait at the end of its turn, without sandbox or slot, and the next one goes on with them", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path, { turns: TURNS, slots: 4 });
    const plan = { num_samples: 2, goal: { groups: 1 }, unfinished: "park" };
    await t.send("POST", "/v1/batches", { ...plan, id: "b", instances: rows(3) });
    await t.turn("b-1-0");
    for (let turn = 0; turn < TURNS; turn++) {
      await t.turn("b-0-0");
      await t.turn("b-0-1");
    }
    await t.give("b-0-0", 1);
    await t.give("b-0-1", 0);
    await batchOf(t, "b");
    await waitFor(() => t.playing.has("b-1-1"), "all to be there");
    for (const id of ["b-1-0", "b-1-1", "b-2-0", "b-2-1"]) await untilPaused(t, id);
    await waitFor(
      () => t.playing.size === 0 && t.scheduler.active.size === 0,
      "all to be put aside",
    );
    expect(t.scheduler.pauses.alive).toBe(0);
    await t.send("POST", "/v1/batches", { ...plan, id: "n", carry_from: "b", instances: [] });
    for (let turn = 1; turn < TURNS; turn++) await t.turn("b-1-0");
    for (let turn = 0; turn < TURNS; turn++) await t.turn("b-1-1");
    await t.give("b-1-0", 0);
    await t.give("b-1-1", 1);
    const { body } = await t.send("GET", "/v1/batches/n/groups?trajectories=true&wait_ms=20000");
    expect(body.groups).toMatchObject([{ id: "b-1", rewards: [0, 1] }]);
    expect(body.groups[0].members[0].trajectory[0]).toBe("turn of attempt 1");
  });
});

describe("a batch of partial rollouts", () => {
  test("begins no more groups than it may, and ends when they all wait", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path, { turns: TURNS, slots: 4 });
    const goal = { expected_share: 1, oversampling: 2, max_rollouts: 4 };
    await t.send("POST", "/v1/batches", { ...FIRST, ...goal, instances: rows(20) });
    const state = async () => (await t.send("GET", "/v1/batches/b")).body;
    while ((await state()).state === "running") {
      // Requests alone never leave the turn of the event loop.
      await new Promise((resolve) => setImmediate(resolve));
      for (const id of t.playing.keys()) if (!paused(t).includes(id)) await untilPaused(t, id);
    }
    // Two groups that wait are as many as it may need; two more were under way when the second came to wait.
    expect(await state()).toMatchObject({
      state: "exhausted",
      groups: { waiting: 16, running: 4 },
    });
  });

  test("is refused where its unfinished rollouts could not be gone on with", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    for (const unfinished of ["end", "restart"]) {
      const { status, body } = await t.send("POST", "/v1/batches", { ...FIRST, unfinished });
      expect([status, body.error.field]).toEqual([400, "unfinished"]);
    }
    await t.send("POST", "/v1/batches", FIRST);
    const early = await t.send("POST", "/v1/batches", NEXT);
    expect([early.status, early.body.error.field]).toEqual([400, "series"]);
  });
});
