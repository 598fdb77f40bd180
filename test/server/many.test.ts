import { describe, expect, test } from "bun:test";
import type { FakeThread } from "../support/fake-thread.ts";
import { waitFor } from "../support/wait-for.ts";
import { ECHO, setup } from "./setup.ts";

const ids = (body: { rollouts: { id: string }[] }) => body.rollouts.map(({ id }) => id);
const labelled = (id: string, labels: Record<string, string>) => ({ id, ...ECHO, labels });

describe("labels", () => {
  test("list rollouts, and cancel them all but no others", async () => {
    await using t = setup({ held: true });
    const rollouts = Array.from({ length: 12 }, (_, i) => labelled(`r${i}`, { step: `${i % 2}` }));
    await t.send("POST", "/v1/rollouts", { rollouts });
    const odd = rollouts.filter((_, i) => i % 2).map(({ id }) => id);
    const listed = await t.send("GET", "/v1/rollouts?label=step:1");
    expect([ids(listed.body), listed.body.more]).toEqual([odd, false]);
    expect(listed.body.rollouts[0].labels).toEqual({ step: "1" });
    expect((await t.send("DELETE", "/v1/rollouts?label=step:1")).body).toEqual({ cancelled: 6 });
    const ending = await t.send("GET", "/v1/rollouts?label=step:1&state=active");
    for (const thread of t.threads) for (const start of thread.starts()) thread.finish(start);
    await waitFor(async () => {
      const { body } = await t.send("GET", "/v1/rollouts?label=step:1&state=cancelled");
      return ids(body).length === 6;
    }, "all of them to be cancelled");
    expect(ending.body.rollouts.every(({ ending }: { ending: string }) => ending)).toBe(true);
    const others = await t.send("GET", "/v1/rollouts?label=step:0&state=cancelled");
    expect(ids(others.body)).toEqual([]);
  });

  test("have to be named to cancel many, and are checked", async () => {
    await using t = setup();
    const all = await t.send("DELETE", "/v1/rollouts");
    expect([all.status, all.body.error.field]).toEqual([400, "label"]);
    expect((await t.send("DELETE", "/v1/rollouts?label=nocolon")).status).toBe(400);
    for (const labels of [{ "": "x" }, { "a:b": "x" }, { a: "x\ny" }, { a: 1 }]) {
      const { status } = await t.send("POST", "/v1/rollouts", { ...ECHO, labels });
      expect(status).toBe(400);
    }
    const many = Object.fromEntries(Array.from({ length: 17 }, (_, i) => [`l${i}`, ""]));
    expect((await t.refusal({ ...ECHO, labels: many })).slice(0, 2)).toEqual([
      400,
      "invalid_field",
    ]);
  });
});

test("a dry run says what would be done, refuses what would be refused, and does nothing", async () => {
  await using t = setup({ held: true });
  await t.send("POST", "/v1/rollouts", { id: "known", ...ECHO });
  const rollouts = [
    { id: "known", ...ECHO },
    { id: "new", ...ECHO },
  ];
  const dry = await t.send("POST", "/v1/rollouts?dry_run=true", { rollouts });
  expect([dry.status, dry.body]).toEqual([
    200,
    {
      dry_run: true,
      rollouts: [
        { id: "known", created: false },
        { id: "new", created: true },
      ],
    },
  ]);
  expect((await t.send("GET", "/v1/rollouts/new")).status).toBe(404);
  const other = { id: "known", instance: { data_source: "echo", reward: 0 } };
  expect((await t.send("POST", "/v1/rollouts?dry_run=true", other)).status).toBe(422);
});

test("P4: the same submit a hundred times at the same moment is one job", async () => {
  await using t = setup({ held: true });
  const replies = await Promise.all(
    Array.from({ length: 100 }, () => t.send("POST", "/v1/rollouts", { id: "a", ...ECHO })),
  );
  expect(replies.filter(({ body }) => body.created)).toHaveLength(1);
  expect(ids((await t.send("GET", "/v1/rollouts")).body)).toEqual(["a"]);
});

describe("a lease", () => {
  test("that is not renewed ends the rollout, and one that is renewed does not", async () => {
    await using t = setup({ held: true });
    const leased = (id: string) => ({ id, ...ECHO, lease_ms: 60_000, labels: { by: id } });
    const rollouts = [leased("a"), leased("b"), leased("c"), { id: "free", ...ECHO }];
    await t.send("POST", "/v1/rollouts", { rollouts });
    t.clock.aheadMs = 40_000;
    const byId = await t.send("POST", "/v1/rollouts/renew", { ids: ["a", "free", "nobody"] });
    expect(byId.body).toEqual({ renewed: 1, missing: ["free", "nobody"] });
    const byLabel = await t.send("POST", "/v1/rollouts/renew", { labels: { by: "b" } });
    expect(byLabel.body).toEqual({ renewed: 1, missing: [] });
    t.clock.aheadMs = 70_000;
    await waitFor(async () => {
      const { body } = await t.send("GET", "/v1/rollouts/c");
      return body.ending === "cancel";
    }, "the end of what was not renewed");
    const thread = t.threads.find((candidate) => candidate.starts().length > 0) as FakeThread;
    thread.finish(thread.starts()[2] as never);
    const over = await t.send("GET", "/v1/rollouts/c?wait_ms=20000");
    expect(over.body).toMatchObject({ state: "cancelled", lease_until: null });
    expect(over.body.error.message).toContain("its lease was not renewed");
    for (const id of ["a", "b", "free"]) {
      expect((await t.send("GET", `/v1/rollouts/${id}`)).body.ending).toBeNull();
    }
  });
});

test("P10: more waiting requests than allowed are refused, and say when to come back", async () => {
  await using t = setup({ held: true, maxWaiting: 2 });
  await t.send("POST", "/v1/rollouts", { id: "a", ...ECHO });
  const polls = [1, 2].map(() => t.send("GET", "/v1/rollouts/a?wait_ms=20000"));
  const refused = await t.app.request("/v1/rollouts/a?wait_ms=20000", {}, t.env);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
  expect((await t.send("GET", "/v1/rollouts/a")).status).toBe(200);
  for (const thread of t.threads) for (const start of thread.starts()) thread.finish(start);
  await t.send("DELETE", "/v1/rollouts/a");
  for (const thread of t.threads) for (const start of thread.starts()) thread.finish(start);
  expect((await Promise.all(polls)).map(({ status }) => status)).toEqual([200, 200]);
});

test("P10: who waits for a group or a batch counts as well", async () => {
  await using t = setup({ held: true, maxWaiting: 1 });
  const group = { instance: ECHO.instance, num_samples: 2 };
  await t.send("POST", "/v1/groups", { id: "g", ...group });
  const batch = { goal: { groups: 1 }, num_samples: 2, instances: [ECHO.instance] };
  await t.send("POST", "/v1/batches", { id: "b", ...batch });
  const poll = t.send("GET", "/v1/groups/g?wait_ms=20000");
  const others = ["/v1/groups/g", "/v1/batches/b", "/v1/batches/b/groups"];
  for (const path of others)
    expect([path, (await t.send("GET", `${path}?wait_ms=20000`)).status]).toEqual([path, 429]);
  await t.send("DELETE", "/v1/groups/g");
  expect((await poll).body.state).toBe("cancelled");
  expect((await t.send("GET", "/v1/batches/b")).status).toBe(200);
});

test("P10: of ten times the work that fits, what was accepted ends, and the rest is told when to come back", async () => {
  await using t = setup({ held: true });
  const submit = (index: number) =>
    t.app.request(
      "/v1/rollouts",
      {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ id: `r${index}`, ...ECHO }),
      },
      { ...t.env, client: `client ${index % 3}` },
    );
  const answers = await Promise.all(Array.from({ length: 1000 }, (_, index) => submit(index)));
  const accepted = answers.flatMap(({ status }, index) => (status === 201 ? [`r${index}`] : []));
  const refused = answers.filter(({ status }) => status !== 201);
  expect(accepted.length).toBe(100);
  expect(new Set(refused.map(({ status }) => status))).toEqual(new Set([429]));
  expect(refused.every(({ headers }) => Number(headers.get("retry-after")) > 0)).toBe(true);
  for (const thread of t.threads) {
    thread.onStart = (start) => thread.finish(start);
    for (const start of thread.starts()) thread.finish(start);
  }
  const finished = await waitFor(async () => {
    const { body } = await t.send("GET", "/v1/rollouts?order=finished&limit=1000");
    return body.rollouts.length === accepted.length && ids(body);
  }, "what was accepted to end");
  expect(finished.toSorted()).toEqual(accepted.toSorted());
});
