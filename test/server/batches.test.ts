import { describe, expect, test } from "bun:test";
import { cpSync } from "node:fs";
import type { GroupView } from "../../src/protocol/group-view.ts";
import { BROKEN, groupService, mortalGroupService } from "../support/group-service.ts";
import { randomFrom } from "../support/random.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

type Service = ReturnType<typeof groupService>;

const rows = (count: number, from = 0) =>
  Array.from({ length: count }, (_, index) => ({
    data_source: "echo",
    instance_id: `row-${from + index}`,
  }));

const BATCH = { id: "b", num_samples: 2, goal: { groups: 2 }, instances: rows(6) };

/** Gives the group of `row` its two rewards. */
async function decide(t: Service, group: string, first: number, second: number) {
  await t.give(`${group}-0`, first);
  await t.give(`${group}-1`, second);
}

/** A batch that comes to its goal while another of its groups has one of its rewards. */
async function leave(t: Service, { unfinished }: { unfinished: string }) {
  await t.send("POST", "/v1/batches", { ...BATCH, goal: { groups: 1 }, unfinished });
  await t.give("b-1-0", 1);
  await decide(t, "b-0", 0, 1);
}

const ids = (groups: { id: string }[]) => groups.map(({ id }) => id);

describe("a batch", () => {
  test("hands over informative groups as they are complete, ends at its goal, and ends what is left", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    const { status, body } = await t.send("POST", "/v1/batches", BATCH);
    expect([status, body.state, body.delivered]).toEqual([201, "running", 0]);
    const first = t.send("GET", "/v1/batches/b/groups?wait_ms=20000&advantages=grpo");
    await decide(t, "b-1", 1, 1);
    await decide(t, "b-2", 1, 0);
    expect((await first).body).toMatchObject({
      groups: [{ id: "b-2", state: "complete", rewards: [1, 0], advantages: "grpo" }],
      next: 1,
      over: false,
    });
    const second = t.send("GET", "/v1/batches/b/groups?wait_ms=20000&after=1");
    await decide(t, "b-0", 0, 0.5);
    expect(ids((await second).body.groups)).toEqual(["b-0"]);
    const done = await t.send("GET", "/v1/batches/b?wait_ms=20000");
    expect(done.body).toMatchObject({ state: "complete", delivered: 2, surplus: 0, error: null });
    expect(done.body.groups).toMatchObject({ complete: 3, running: 0, waiting: 0 });
    expect(done.body.lengths).toMatchObject({ kept: { rollouts: 4, mean: 7 } });
    const end = await t.send("GET", "/v1/batches/b/groups?after=2");
    expect(end.body).toMatchObject({ groups: [], over: true });
    await waitFor(() => t.scheduler.unfinished === 0, "what is left to end");
    const ended = await t.send("GET", "/v1/groups/b-3");
    expect(ended.body).toMatchObject({ state: "ended", error: { code: "not_needed" } });
  });

  test("still tells what it handed over when retention has removed its rollouts, and so do its groups", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    await t.send("POST", "/v1/batches", { ...BATCH, instances: rows(2) });
    await decide(t, "b-0", 1, 0);
    await decide(t, "b-1", 0.5, 0);
    const tell = async () => {
      const { body: batch } = await t.send("GET", "/v1/batches/b?wait_ms=20000");
      const { body: page } = await t.send("GET", "/v1/batches/b/groups");
      const groups = page.groups.map(({ id, rewards, mean, spread, members }: GroupView) => ({
        ...{ id, rewards, mean, spread },
        members: members.map((member) => [member.sample, member.id, member.state, member.reward]),
      }));
      return { batch, groups };
    };
    const before = await tell();
    expect(before.batch).toMatchObject({ state: "complete", delivered: 2 });
    expect(before.batch.handed_over).toEqual([
      { group: "b-0", rewards: [1, 0], rollouts: ["b-0-0", "b-0-1"] },
      { group: "b-1", rewards: [0.5, 0], rollouts: ["b-1-0", "b-1-1"] },
    ]);
    await t.send("POST", "/v1/rollouts", { id: "last", instance: { data_source: "echo" } });
    await t.give("last", 1);
    await waitFor(() => t.store.jobById("last")?.state === "succeeded", "the last one");
    const gone = t.store.transaction(() => t.store.retention.remove(1e15, 1e15, 100));
    t.store.transaction(() => t.store.groupRetention.remove(1e15, 0, 100));
    expect([gone, t.store.jobById("b-0-0")]).toEqual([4, null]);
    expect(await tell()).toEqual(before);
  });

  test("begins no more groups than it may need, and more when fewer are informative than was expected", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    await t.send("POST", "/v1/batches", {
      ...{ ...BATCH, instances: rows(40), goal: { groups: 1 } },
      ...{ expected_share: 1, oversampling: 1 },
    });
    const begun = async () => {
      const { body } = await t.send("GET", "/v1/batches/b");
      return 40 - body.groups.waiting;
    };
    expect(await begun()).toBe(1);
    // Four expected ones weigh as much as those that were decided: 4 of 5, then 4 of 7, and so on.
    await decide(t, "b-0", 1, 1);
    await waitFor(async () => (await begun()) === 3, "two more to be begun");
    await decide(t, "b-1", 0, 0);
    await decide(t, "b-2", 1, 1);
    await waitFor(async () => (await begun()) === 5, "two more to be begun");
    await decide(t, "b-3", 0, 0);
    await decide(t, "b-4", 0, 0);
    await waitFor(async () => (await begun()) === 8, "three at once to be begun");
  });

  test("ends groups as soon as others are certain to reach the goal, and keeps those with the most work in them", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    const batch = { ...BATCH, num_samples: 3, goal: { groups: 1 }, oversampling: 1 };
    await t.send("POST", "/v1/batches", { ...batch, expected_share: 0.2 });
    await waitFor(() => t.waiting.has("b-2-2"), "three groups to run");
    await t.give("b-1-0", 0);
    await t.give("b-1-1", 1);
    // That one can't fail to be informative any more.
    await waitFor(
      async () => (await t.send("GET", "/v1/groups/b-0")).body.state === "ended",
      "the others to be ended",
    );
    await t.give("b-1-2", 0);
    const { body } = await t.send("GET", "/v1/batches/b?wait_ms=20000");
    expect(body).toMatchObject({ state: "complete", delivered: 1 });
  });

  test("keeps the order in which groups were begun, where it is asked to", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    await t.send("POST", "/v1/batches", { ...BATCH, keep: "first_started" });
    await decide(t, "b-2", 0, 1);
    await decide(t, "b-1", 1, 0);
    await decide(t, "b-0", 1, 1);
    await t.send("GET", "/v1/batches/b?wait_ms=20000");
    const { body } = await t.send("GET", "/v1/batches/b/groups");
    expect(ids(body.groups)).toEqual(["b-1", "b-2"]);
  });

  test("takes instances while it runs, each once, and says so when they did not bring the goal", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    await t.send("POST", "/v1/batches", { ...BATCH, instances: rows(1), open: true });
    await decide(t, "b-0", 1, 1);
    const more = { instances: rows(2, 1), at: 1 };
    const added = await t.send("POST", "/v1/batches/b/instances", more);
    expect(added.body).toEqual({ added: 2, instances: 3 });
    const repeated = await t.send("POST", "/v1/batches/b/instances", { ...more, close: true });
    expect(repeated.body).toEqual({ added: 0, instances: 3 });
    const beyond = await t.send("POST", "/v1/batches/b/instances", { instances: rows(1), at: 9 });
    expect([beyond.status, beyond.body.error.field]).toEqual([400, "at"]);
    const closed = await t.send("POST", "/v1/batches/b/instances", { instances: rows(1) });
    expect([closed.status, closed.body.error.field]).toEqual([400, "instances"]);
    await decide(t, "b-1", 0, 1);
    await decide(t, "b-2", 0, 0);
    const { body } = await t.send("GET", "/v1/batches/b?wait_ms=20000");
    expect(body).toMatchObject({ state: "exhausted", delivered: 1 });
    expect(body.error).toMatchObject({ code: "batch_exhausted" });
    const { body: known } = await t.send("GET", "/v1/instances?mean_at_least=0.1&mean_at_most=0.9");
    expect(known.instances).toMatchObject([
      {
        key: "echo:row-1",
        groups: 1,
        informative: 1,
        rollouts: 2,
        mean_reward: 0.5,
        mean_tokens: 7,
      },
    ]);
  });

  test("is waited for by who submits it, where they say so", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    const submit = t.send("POST", "/v1/batches?wait_ms=20000", { ...BATCH, goal: { groups: 1 } });
    await decide(t, "b-0", 0, 1);
    expect((await submit).body).toMatchObject({ created: true, state: "complete", delivered: 1 });
    const odd = await t.send("POST", "/v1/batches?wait=5", { ...BATCH, id: "c" });
    expect([odd.status, odd.body.error.code]).toEqual([400, "unknown_field"]);
  });

  test("never has more rollouts at once than it may, also where a group does not fit in whole", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    await t.send("POST", "/v1/batches", { ...BATCH, max_rollouts: 3 });
    await waitFor(() => t.waiting.size === 2, "its first group");
    expect(t.scheduler.unfinished).toBe(2);
    await t.give("b-0-0", 1);
    await waitFor(() => t.waiting.has("b-1-1"), "its second group");
    expect([...t.waiting.keys()].sort()).toEqual(["b-0-1", "b-1-0", "b-1-1"]);
    expect(t.scheduler.unfinished).toBe(3);
  });

  test("that can't reach its goal says what became of its groups", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    const few = { ...BATCH, instances: rows(3), max_replacements: 0, max_staleness: 0 };
    await t.send("POST", "/v1/batches", few);
    await decide(t, "b-0", 1, 0);
    await t.send("GET", "/v1/batches/b/groups?wait_ms=20000");
    t.announce();
    await t.give("b-1-0", BROKEN);
    const { body } = await t.send("GET", "/v1/batches/b?wait_ms=20000");
    expect(body.error.message.split("; ")).toEqual([
      "its instances gave 1 informative groups, the goal is 2",
      "1 groups were decided",
      "1 failed, the last because: the group can't be completed, because more than 0 of its rollouts failed: no",
      "1 were ended, the last because it was begun more than 0 weight versions ago",
    ]);
  });

  test("is given up when too many of its groups fail, and says why", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    await t.send("POST", "/v1/batches", { ...BATCH, max_failed_groups: 1, max_replacements: 0 });
    await t.give("b-0-0", BROKEN);
    await t.give("b-1-0", BROKEN);
    const { body } = await t.send("GET", "/v1/batches/b?wait_ms=20000");
    expect(body).toMatchObject({ state: "failed", error: { code: "sandbox_start_failed" } });
    await waitFor(() => t.scheduler.unfinished === 0, "what is left to end");
  });

  test("that is cancelled ends all that is under way for it", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    await t.send("POST", "/v1/batches", BATCH);
    await waitFor(() => t.waiting.has("b-1-1"), "it to run");
    const { body } = await t.send("DELETE", "/v1/batches/b?wait_ms=20000");
    expect(t.scheduler.unfinished).toBe(0);
    expect(body).toMatchObject({ state: "cancelled", error: { code: "cancelled" } });
    await waitFor(() => t.scheduler.unfinished === 0, "its rollouts to end");
    expect((await t.send("DELETE", "/v1/batches/nobody")).status).toBe(404);
  });

  test("is refused with its field", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    const refusals = [
      [{ ...BATCH, goal: { groups: 0 } }, "goal.groups"],
      [{ ...BATCH, instances: [] }, "instances"],
      [{ ...BATCH, instances: [...rows(1), { data_source: "nope" }] }, "instances[1].instance"],
      [{ ...BATCH, instances: [], open: true, informative: { rule: "x" } }, "informative.rule"],
      [{ ...BATCH, carry_from: "nobody" }, "carry_from"],
      [{ ...BATCH, unfinished: "sell" }, "unfinished"],
      [{ ...BATCH, num_samples: 1 }, "informative"],
      [{ ...BATCH, complete_at: 1 }, "informative"],
      [{ ...BATCH, complete_at: BATCH.num_samples + 1 }, "complete_at"],
      [{ ...BATCH, instances: [], open: true, informative: { spread_above: 1 } }, "informative"],
      [{ ...BATCH, informative: { rule: "mean > 2" } }, "informative"],
      [{ ...BATCH, max_rollouts: 1 }, "max_rollouts"],
    ] as const;
    for (const [body, field] of refusals) {
      const { body: reply } = await t.send("POST", "/v1/batches", body);
      expect(reply.error?.field).toStartWith(field);
    }
  });
});

test("the rollouts of groups and batches are their client's, and another's queue holds none of them up", async () => {
  using dir = tempDir();
  await using t = groupService(dir.path, { slots: 4 });
  const many = Array.from({ length: 300 }, (_, at) => ({ id: `x-${at}`, instance: rows(1)[0] }));
  await t.send("POST", "/v1/rollouts", { rollouts: many }, "busy");
  await t.send("POST", "/v1/groups", { id: "g", num_samples: 2, instance: rows(1)[0] }, "ann");
  await t.send("POST", "/v1/batches", { ...BATCH, instances: rows(1), open: true }, "ben");
  await t.send("POST", "/v1/batches/b/instances", { instances: rows(1, 1) }, "other");
  await waitFor(() => t.waiting.has("g-1") && t.waiting.has("b-1-1"), "them to have their turn");
  const clients = ["g-0", "b-0-0", "b-1-0"].map((id) => t.store.jobById(id)?.client);
  expect(clients).toEqual(["ann", "ben", "ben"]);
  expect(t.store.jobById("x-299")?.state).toBe("pending");
});

describe("what a batch leaves unfinished", () => {
  test("goes on and is the next batch's first, with the rewards that it has", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    await leave(t, { unfinished: "keep" });
    await t.send("GET", "/v1/batches/b?wait_ms=20000");
    await t.send("POST", "/v1/batches", { id: "n", ...NEXT, carry_from: "b" });
    await t.give("b-1-1", 0);
    const { body } = await t.send("GET", "/v1/batches/n/groups?wait_ms=20000");
    expect(body.groups).toMatchObject([{ id: "b-1", rewards: [1, 0] }]);
    const done = await t.send("GET", "/v1/batches/b");
    expect(done.body).toMatchObject({ state: "complete", delivered: 1 });
  });

  test("is put aside with the rewards that it has, and only the rest is begun again", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    await leave(t, { unfinished: "restart" });
    await waitFor(() => t.scheduler.unfinished === 0, "all of it to be put aside");
    expect((await t.send("GET", "/v1/groups/b-1")).body.state).toBe("carried");
    await t.send("POST", "/v1/batches", { id: "n", ...NEXT, carry_from: "b" });
    await t.give("b-1-1-r1", 0);
    const { body } = await t.send("GET", "/v1/batches/n/groups?wait_ms=20000");
    expect(body.groups).toMatchObject([{ id: "b-1", rewards: [1, 0] }]);
  });

  for (const unfinished of ["keep", "restart"]) {
    test(`survives restarts before and after it is taken over (${unfinished})`, async () => {
      await using life = mortalGroupService();
      await leave(life.now, { unfinished });
      await life.now.send("GET", "/v1/batches/b?wait_ms=20000");
      await life.kill();
      await life.now.send("POST", "/v1/batches", { id: "n", ...NEXT, carry_from: "b" });
      await life.kill();
      const t = life.now;
      await t.give(unfinished === "keep" ? "b-1-1" : "b-1-1-r1", 0);
      const { body } = await t.send("GET", "/v1/batches/n/groups?wait_ms=20000");
      expect(body).toMatchObject({ groups: [{ id: "b-1", rewards: [1, 0] }], over: true });
      const { body: first } = await t.send("GET", "/v1/batches/b/groups");
      expect(ids(first.groups)).toEqual(["b-0"]);
      await waitFor(() => t.scheduler.unfinished === 0, "what is left to end");
    });
  }

  test("is ended when it was begun too many weight versions ago", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path);
    await leave(t, { unfinished: "keep" });
    await t.send("GET", "/v1/batches/b?wait_ms=20000");
    t.announce();
    t.announce();
    const next = { ...NEXT, max_staleness: 1, carry_from: "b" };
    await t.send("POST", "/v1/batches", { id: "n", ...next, instances: rows(1, 6) });
    await waitFor(
      async () => (await t.send("GET", "/v1/groups/b-1")).body.state === "ended",
      "the old group to be ended",
    );
    await waitFor(() => t.waiting.has("n-6-1"), "a new one to run");
    await decide(t, "n-6", 1, 0);
    const { body } = await t.send("GET", "/v1/batches/n/groups?wait_ms=20000");
    expect(ids(body.groups)).toEqual(["n-6"]);
    const labelled = await t.send("GET", "/v1/rollouts?label=group:n-6,batch:n");
    expect(labelled.body.rollouts).toHaveLength(2);
  });

  test("loses only the rollouts that are too old, over or not, where it is asked to", async () => {
    using dir = tempDir();
    using copy = tempDir();
    const first = groupService(dir.path);
    const goal = { groups: 1 };
    const samples = { num_samples: 3 };
    await first.send("POST", "/v1/batches", { ...BATCH, ...samples, goal, unfinished: "keep" });
    await first.give("b-1-0", 1);
    for (const [sample, reward] of [0, 1, 0].entries()) await first.give(`b-0-${sample}`, reward);
    await first.send("GET", "/v1/batches/b?wait_ms=20000");
    first.announce();
    // A rollout that somebody cancels is begun again, under the new weights.
    await first.send("DELETE", "/v1/rollouts/b-1-2");
    await waitFor(() => first.waiting.has("b-1-2-r1"), "another in its place");
    first.announce();
    const next = { ...NEXT, ...samples, max_staleness: 1, stale: "drop", carry_from: "b" };
    await first.send("POST", "/v1/batches", { id: "n", ...next });
    await waitFor(() => first.waiting.has("b-1-0-r1"), "what was over to be begun again");
    cpSync(dir.path, copy.path, { recursive: true });
    await first[Symbol.asyncDispose]();
    await using t = groupService(copy.path);
    await t.give("b-1-0-r1", 0);
    await t.give("b-1-1-r1", 0);
    await t.give("b-1-2-r1", 1);
    const { body } = await t.send("GET", "/v1/batches/n/groups?wait_ms=20000");
    expect(body.groups).toMatchObject([{ id: "b-1", rewards: [0, 0, 1] }]);
    const members = body.groups[0].members.map(({ id }: { id: string }) => id);
    expect(members).toEqual(["b-1-0-r1", "b-1-1-r1", "b-1-2-r1"]);
    const done = await t.send("GET", "/v1/batches/n?wait_ms=20000");
    expect(done.body.lengths).toMatchObject({ kept: { rollouts: 3 }, scored: { rollouts: 4 } });
  });

  test("is ended when no other batch takes it over in time", async () => {
    using dir = tempDir();
    await using t = groupService(dir.path, { carryLimitMs: 50 });
    const goal = { groups: 1 };
    await t.send("POST", "/v1/batches", { ...BATCH, goal, unfinished: "keep" });
    await decide(t, "b-0", 0, 1);
    await waitFor(() => t.scheduler.unfinished === 0, "what was kept to end");
    expect((await t.send("GET", "/v1/groups/b-5")).body.state).toBe("ended");
  });
});

const NEXT = { num_samples: 2, goal: { groups: 1 } };

test("tokens are enough for a goal before its groups are, and no group too many is handed over", async () => {
  using dir = tempDir();
  await using t = groupService(dir.path);
  const goal = { groups: 5, tokens: 14 };
  await t.send("POST", "/v1/batches", { ...BATCH, goal, keep: "first_started" });
  await decide(t, "b-1", 0, 1);
  await waitFor(
    async () => (await t.send("GET", "/v1/groups/b-1")).body.state === "complete",
    "the second to be complete, and to wait for the first",
  );
  await decide(t, "b-0", 0, 1);
  const { body } = await t.send("GET", "/v1/batches/b?wait_ms=20000");
  expect(body).toMatchObject({ state: "complete", delivered: 1, surplus: 1 });
});

const POLICY = { ...BROKEN, code: "oom", boundary: "policy", retryable: false } as const;
const SAMPLES = 3;
const GOAL = 3;

/** How two batches go, of which the second begins with what the first one left. */
const WALKS = [
  { keep: "cheapest", unfinished: "keep", on_policy_failure: "replace" },
  { keep: "first_started", unfinished: "restart", on_policy_failure: "drop" },
  { keep: "first_started", unfinished: "keep", on_policy_failure: "drop" },
  { keep: "cheapest", unfinished: "end", on_policy_failure: "replace" },
] as const;

/** As the formulas have them, written out once more. */
function expectedAdvantages(kind: string, rewards: number[]): number[] {
  const total = rewards.reduce((sum, reward) => sum + reward, 0);
  const n = rewards.length;
  if (kind === "rloo") return rewards.map((reward) => reward - (total - reward) / (n - 1));
  const squares = rewards.reduce((sum, reward) => sum + (reward - total / n) ** 2, 0);
  return rewards.map((reward) => (reward - total / n) / (Math.sqrt(squares / (n - 1)) + 1e-6));
}

test.each(WALKS)(
  "whatever the order of ends, faults, cancels and restarts, batches bring exactly their groups, each with exactly its samples: %o",
  async (how) => {
    const random = randomFrom(5);
    const pick = <T>(items: readonly T[]) => items[Math.floor(random() * items.length)] as T;
    await using life = mortalGroupService();
    const given = new Map<string, number | "failed">();
    const brought: string[] = [];
    let restarts = 0;
    for (const [at, id] of ["a", "b"].entries()) {
      await life.now.send("POST", "/v1/batches", {
        ...{
          ...how,
          id,
          num_samples: SAMPLES,
          goal: { groups: GOAL },
          instances: rows(40, 40 * at),
        },
        ...{ max_replacements: 50, max_failed_groups: 50, ...(at > 0 && { carry_from: "a" }) },
      });
      const seen: { id: string }[] = [];
      for (let over = false; !over; ) {
        // Requests alone never leave the turn of the event loop.
        await new Promise((resolve) => setImmediate(resolve));
        const t = life.now;
        const held = [...t.waiting.keys()];
        if (held.length > 0) {
          const rollout = pick(held);
          const end = pick([0, 1, 0, 1, 0, 1, BROKEN, BROKEN, POLICY] as const);
          if (random() < 0.05) await t.send("DELETE", `/v1/rollouts/${rollout}`);
          else {
            given.set(rollout, typeof end === "number" ? end : "failed");
            await t.give(rollout, end);
          }
        }
        const page = `/v1/batches/${id}/groups?after=${seen.length}&limit=1`;
        const { body } = await life.now.send("GET", page);
        seen.push(...body.groups);
        over = body.over;
        // Whenever a group was just handed over, and others may wait for their turn.
        if (!over && restarts < 8 && (body.groups.length > 0 || random() < 0.03)) {
          restarts++;
          await life.kill();
        }
      }
      expect(seen).toHaveLength(GOAL);
      brought.push(...ids(seen));
      for (const kind of ["grpo", "rloo", "dapo"]) {
        const path = `/v1/batches/${id}/groups?advantages=${kind}&limit=100`;
        const { body } = await life.now.send("GET", path);
        expect(ids(body.groups)).toEqual(ids(seen));
        for (const group of body.groups) {
          expect(group.members).toHaveLength(SAMPLES);
          const counted = group.members.filter(
            ({ state }: { state: string }) => state === "scored",
          );
          const dropped = group.members.filter(
            ({ state }: { state: string }) => state === "dropped",
          );
          expect(counted.length + dropped.length).toBe(SAMPLES);
          if (how.on_policy_failure === "replace") expect(dropped).toEqual([]);
          const rewards = counted.map((member: { id: string }) => given.get(member.id));
          expect(group.rewards).toEqual(rewards);
          expect(new Set(rewards).size).toBe(2);
          const shown = counted.map(({ advantage }: { advantage: number }) => advantage);
          for (const [index, advantage] of expectedAdvantages(kind, rewards).entries()) {
            expect(shown[index]).toBeCloseTo(advantage, 9);
          }
        }
      }
    }
    expect(restarts).toBeGreaterThan(2);
    expect(new Set(brought).size).toBe(2 * GOAL);
    if (how.unfinished === "end") {
      await waitFor(() => life.now.scheduler.unfinished === 0, "nothing to be left");
    }
  },
  60_000,
);
