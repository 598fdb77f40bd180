import { expect, test } from "bun:test";
import { cpSync } from "node:fs";
import { BROKEN, groupService } from "../support/group-service.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const GROUP = { instance: { data_source: "echo", instance_id: "row-1" }, num_samples: 3 };
const OOM = { code: "oom", message: "no", boundary: "policy", retryable: false } as const;

test("a group comes back whole: rewards, figures, advantages, trajectories, and a seed for each", async () => {
  using dir = tempDir();
  await using t = groupService(dir.path);
  const submitted = await t.send("POST", "/v1/groups", {
    ...{ id: "g", ...GROUP, sampling: { seed: 5, temperature: 1 } },
    overlong: { mode: "penalty", max_tokens: 8, buffer_tokens: 2 },
  });
  expect([submitted.status, submitted.body.created, submitted.body.state]).toEqual([
    201,
    true,
    "running",
  ]);
  const polled = t.send("GET", "/v1/groups/g?wait_ms=20000&advantages=rloo&trajectories=true");
  for (const [sample, reward] of [0, 1, 0.5].entries()) await t.give(`g-${sample}`, reward);
  const { body } = await polled;
  expect(body).toMatchObject({
    ...{ state: "complete", informative: true, rewards: [0, 1, 0.5], mean: 0.5, spread: 1 },
    ...{ advantages: "rloo", token_weight: null, replaced: [], error: null },
    instance: GROUP.instance,
  });
  // Each wrote 7 tokens, half-way into the buffer.
  expect(body.members).toMatchObject([
    {
      id: "g-0",
      state: "scored",
      shaped_reward: -0.5,
      advantage: -0.75,
      tokens: 7,
      trajectory: {},
    },
    { id: "g-1", state: "scored", shaped_reward: 0.5, advantage: 0.75, tokens: 7, trajectory: {} },
    { id: "g-2", state: "scored", shaped_reward: 0, advantage: 0, tokens: 7, trajectory: {} },
  ]);
  const seeds = ["g-0", "g-1", "g-2"].map(
    (id) => JSON.parse(t.store.workById(id)?.options ?? "").sampling,
  );
  expect(seeds).toEqual([5, 6, 7].map((seed) => ({ seed, temperature: 1 })));
  const dapo = await t.send("GET", "/v1/groups/g?advantages=dapo");
  expect(dapo.body.token_weight).toBe(1 / 21);
});

test("broken rollouts are replaced and count nowhere; beyond the budget the group says why it failed", async () => {
  using dir = tempDir();
  await using t = groupService(dir.path);
  await t.send("POST", "/v1/groups", { id: "g", ...GROUP, max_replacements: 2 });
  await t.give("g-0", BROKEN);
  await t.give("g-0-r1", 1);
  await t.give("g-1", OOM);
  await t.give("g-1-r1", 0);
  await t.give("g-2", 1);
  const { body } = await t.send("GET", "/v1/groups/g?wait_ms=20000");
  expect(body).toMatchObject({ state: "complete", informative: true, rewards: [1, 0, 1] });
  expect(body.replaced.map(({ id, reward }: Record<string, unknown>) => [id, reward])).toEqual([
    ["g-0", null],
    ["g-1", null],
  ]);
  await t.send("POST", "/v1/groups", { id: "h", ...GROUP, max_replacements: 0 });
  await t.give("h-1", BROKEN);
  const failed = await t.send("GET", "/v1/groups/h?wait_ms=20000");
  expect(failed.body).toMatchObject({
    state: "failed",
    informative: null,
    error: { code: "sandbox_start_failed", boundary: "sandbox" },
  });
  expect(failed.body.error.message).toContain("more than 0 of its rollouts failed");
  // The others are ended with it.
  await waitFor(() => t.scheduler.unfinished === 0, "nothing of the group to run");
});

test("a group that is certain ends its other rollouts, and nothing runs any more once it is cancelled", async () => {
  using dir = tempDir();
  await using t = groupService(dir.path);
  const rule = { informative: { rule: "mean >= 0.7" } };
  await t.send("POST", "/v1/groups", { id: "p", ...GROUP, ...rule });
  await t.give("p-1", 0);
  const pruned = await t.send("GET", "/v1/groups/p?wait_ms=20000");
  expect(pruned.body).toMatchObject({ state: "pruned", informative: false, rewards: [0] });
  await t.send("POST", "/v1/groups", { id: "c", ...GROUP });
  await waitFor(() => t.waiting.has("c-2"), "its rollouts to run");
  const cancelled = await t.send("DELETE", "/v1/groups/c?wait_ms=20000");
  expect(cancelled.body).toMatchObject({ state: "cancelled", error: { code: "cancelled" } });
  expect(t.scheduler.unfinished).toBe(0);
  expect((await t.send("DELETE", "/v1/groups/c")).status).toBe(200);
});

test("a bad request names its field; a known id is the same group; what is not there is a 404", async () => {
  using dir = tempDir();
  await using t = groupService(dir.path);
  const refusals = [
    [{ ...GROUP, num_samples: 0 }, "num_samples"],
    [{ num_samples: 2 }, "instance"],
    [{ ...GROUP, instance: { data_source: "nope" } }, "instance.data_source"],
    [{ ...GROUP, informative: { rule: "spread" } }, "informative.rule"],
    [{ ...GROUP, informative: { spread: 1 } }, "informative"],
    [{ ...GROUP, overlong: { mode: "penalty", max_tokens: 5 } }, "overlong.buffer_tokens"],
    [{ ...GROUP, sampling: { top_p: 2 } }, "sampling.top_p"],
    [{ ...GROUP, id: "x".repeat(101) }, "id"],
    [{ ...GROUP, samples: 3 }, "samples"],
    [{ ...GROUP, complete_at: GROUP.num_samples + 1 }, "complete_at"],
  ] as const;
  for (const [body, field] of refusals) {
    const { status, body: reply } = await t.send("POST", "/v1/groups", body);
    expect([status, reply.error.field]).toEqual([400, field]);
  }
  await t.send("POST", "/v1/groups", { id: "g", ...GROUP });
  const again = await t.send("POST", "/v1/groups", { ...GROUP, id: "g" });
  expect([again.status, again.body.created]).toEqual([200, false]);
  const other = await t.send("POST", "/v1/groups", { ...GROUP, id: "g", num_samples: 2 });
  expect([other.status, other.body.error.code]).toEqual([422, "id_conflict"]);
  expect((await t.send("GET", "/v1/groups/nobody?wait_ms=10")).status).toBe(404);
  const listed = await t.send("GET", "/v1/groups?state=running");
  expect(listed.body.groups.map(({ id }: { id: string }) => id)).toEqual(["g"]);
});

test("a group goes on after the service died in the middle of it", async () => {
  using dir = tempDir();
  using copy = tempDir();
  {
    await using t = groupService(dir.path);
    await t.send("POST", "/v1/groups", { id: "g", ...GROUP });
    await t.give("g-1", 1);
    await t.give("g-0", BROKEN);
    await waitFor(() => t.store.jobById("g-0-r1"), "the broken one to be replaced");
    await waitFor(() => t.waiting.has("g-2"), "the last one to run");
    // What a crash at this moment leaves.
    cpSync(dir.path, copy.path, { recursive: true });
  }
  await using next = groupService(copy.path);
  await next.give("g-2", 0);
  await next.give("g-0-r1", 1);
  const { body } = await next.send("GET", "/v1/groups/g?wait_ms=20000");
  expect(body).toMatchObject({ state: "complete", informative: true, rewards: [1, 1, 0] });
  expect(body.replaced).toHaveLength(1);
});

test("a rollout that a start finds to be over counts for its group as any other", async () => {
  using dir = tempDir();
  using copy = tempDir();
  {
    await using t = groupService(dir.path);
    await t.send("POST", "/v1/groups", { id: "g", ...GROUP });
    await t.give("g-1", 1);
    await t.give("g-2", 0);
    const held = await waitFor(() => t.waiting.get("g-0"), "the last one to run");
    await waitFor(() => t.scheduler.unfinished === 1, "the others to be booked");
    // Its thread does not confirm the cancel before the service dies.
    t.waiting.delete("g-0");
    await t.send("DELETE", "/v1/rollouts/g-0");
    cpSync(dir.path, copy.path, { recursive: true });
    held.thread.finish(held.start, { error: BROKEN });
  }
  await using next = groupService(copy.path);
  expect(next.store.jobById("g-0")?.state).toBe("cancelled");
  await next.give("g-0-r1", 1);
  const { body } = await next.send("GET", "/v1/groups/g?wait_ms=20000");
  expect(body).toMatchObject({ state: "complete", rewards: [1, 1, 0] });
});
