import { describe, expect, test } from "bun:test";
import type { FakeThread } from "../support/fake-thread.ts";
import { waitFor } from "../support/wait-for.ts";
import { ECHO, MAX_BODY_BYTES, setup } from "./setup.ts";

describe("submitting", () => {
  test("one rollout answers with itself, many with a list, and a repeated id says that it is known", async () => {
    await using t = setup({ held: true });
    const one = await t.send("POST", "/v1/rollouts", { id: "a", ...ECHO });
    expect([one.status, one.body.id, one.body.created]).toEqual([201, "a", true]);
    const many = await t.send("POST", "/v1/rollouts", { rollouts: [{ id: "a", ...ECHO }, ECHO] });
    expect(many.status).toBe(201);
    expect(many.body.rollouts.map(({ created }: { created: boolean }) => created)).toEqual([
      false,
      true,
    ]);
    const again = await t.send("POST", "/v1/rollouts", { ...ECHO, id: "a" });
    expect([again.status, again.body.created]).toEqual([200, false]);
  });

  test("with wait_ms it answers when the rollout is over, with its reward", async () => {
    await using t = setup();
    const { body } = await t.send("POST", "/v1/rollouts?wait_ms=20000", ECHO);
    expect(body).toMatchObject({ state: "succeeded", reward: 1, error: null, stop_reason: "done" });
  });

  test("every kind of bad request is a typed error that names the field", async () => {
    await using t = setup();
    const nested = (depth: number) =>
      `{"instance":{"data_source":"echo","x":${"[".repeat(depth)}${"]".repeat(depth)}}}`;
    expect(await t.refusal("{")).toEqual([400, "bad_json", "body"]);
    expect(await t.refusal("")).toEqual([400, "bad_json", "body"]);
    expect(await t.refusal([])).toEqual([400, "invalid_field", "body"]);
    expect(await t.refusal({})).toEqual([400, "invalid_field", "instance"]);
    expect(await t.refusal({ instance: {} })).toEqual([
      400,
      "invalid_field",
      "instance.data_source",
    ]);
    expect(await t.refusal({ ...ECHO, instnce: 1 })).toEqual([400, "unknown_field", "instnce"]);
    expect(await t.refusal({ ...ECHO, limits: { run: 1 } })).toEqual([
      400,
      "unknown_field",
      "limits.run",
    ]);
    expect(await t.refusal({ ...ECHO, sampling: { top_p: "1" } })).toEqual([
      400,
      "invalid_field",
      "sampling.top_p",
    ]);
    expect(await t.refusal({ ...ECHO, id: "../x" })).toEqual([400, "invalid_field", "id"]);
    expect(await t.refusal({ rollouts: [ECHO, { ...ECHO, limits: { run_ms: 0 } }] })).toEqual([
      400,
      "invalid_field",
      "rollouts[1].limits.run_ms",
    ]);
    expect(await t.refusal({ rollouts: [] })).toEqual([400, "invalid_field", "rollouts"]);
    expect(await t.refusal({ rollouts: [{ instance: { data_source: "nope" } }] })).toEqual([
      400,
      "unknown_task_kind",
      "rollouts[0].instance.data_source",
    ]);
    expect(await t.refusal({ instance: { data_source: "math", prompt: [] } })).toEqual([
      400,
      "invalid_field",
      "instance.prompt",
    ]);
    expect(await t.refusal({ ...ECHO, pad: "x".repeat(MAX_BODY_BYTES) })).toEqual([
      413,
      "body_too_large",
      "body",
    ]);
    for (const depth of [255, 4900]) {
      expect(await t.refusal(nested(depth))).toEqual([400, "bad_json", "body"]);
    }
    expect((await t.refusal(nested(254)))[0]).toBe(201);
  });

  test("a refused request costs no other rollout anything, not even in the same body", async () => {
    await using t = setup();
    await t.refusal({
      rollouts: [
        { id: "good", ...ECHO },
        { ...ECHO, id: "bad id" },
      ],
    });
    expect((await t.send("GET", "/v1/rollouts/good")).status).toBe(404);
    const { body } = await t.send("POST", "/v1/rollouts?wait_ms=20000", ECHO);
    expect(body.state).toBe("succeeded");
  });

  test("an id that is taken by another body is refused", async () => {
    await using t = setup();
    await t.send("POST", "/v1/rollouts", { id: "a", ...ECHO });
    const other = { id: "a", instance: { data_source: "echo", reward: 0 } };
    expect(await t.refusal(other)).toEqual([422, "id_conflict", "id"]);
    expect(await t.refusal({ rollouts: [ECHO, other] })).toEqual([
      ...[422, "id_conflict", "rollouts[1].id"],
    ]);
  });

  test("a body in chunks is bounded as one with a length is", async () => {
    await using t = setup();
    const chunk = new TextEncoder().encode(" ".repeat(4000));
    const body = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 5; i++) controller.enqueue(chunk);
        controller.close();
      },
    });
    expect(await t.refusal(body)).toEqual([413, "body_too_large", "body"]);
  });
});

describe("reading", () => {
  test("a long poll answers when the rollout ends", async () => {
    await using t = setup({ held: true });
    await t.send("POST", "/v1/rollouts", { id: "a", ...ECHO });
    const polled = t.send("GET", "/v1/rollouts/a?wait_ms=20000");
    const cancelled = await t.send("DELETE", "/v1/rollouts/a");
    expect(cancelled.body).toMatchObject({ state: "active", ending: "cancel" });
    const thread = t.threads.find((candidate) => candidate.starts().length > 0) as FakeThread;
    thread.finish(thread.starts()[0] as never);
    expect((await polled).body).toMatchObject({ state: "cancelled", reward: null });
  });

  test("a cursor over finished rollouts neither skips nor repeats", async () => {
    await using t = setup();
    const ids = Array.from({ length: 7 }, (_, index) => `r${index}`);
    await t.send("POST", "/v1/rollouts", { rollouts: ids.map((id) => ({ id, ...ECHO })) });
    const seen: string[] = [];
    let after = 0;
    await waitFor(async () => {
      const query = `order=finished&limit=2&wait_ms=1000&after=${after}`;
      const { body } = await t.send("GET", `/v1/rollouts?${query}`);
      seen.push(...body.rollouts.map(({ id }: { id: string }) => id));
      after = body.next;
      return seen.length >= ids.length;
    }, "all to be seen");
    expect(seen.toSorted()).toEqual(ids);
  });

  test("lists filter by state, and an unknown state or parameter is refused", async () => {
    await using t = setup();
    await t.send("POST", "/v1/rollouts?wait_ms=20000", { id: "a", ...ECHO });
    const done = await t.send("GET", "/v1/rollouts?state=succeeded");
    expect(done.body.rollouts.map(({ id }: { id: string }) => id)).toEqual(["a"]);
    expect((await t.send("GET", "/v1/rollouts?state=pending,active")).body.rollouts).toEqual([]);
    const wrong = await t.send("GET", "/v1/rollouts?state=done");
    expect([wrong.status, wrong.body.error.field]).toEqual([400, "state[0]"]);
    const unknown = await t.send("GET", "/v1/rollouts?sate=done");
    expect([unknown.status, unknown.body.error.code]).toEqual([400, "unknown_field"]);
  });

  test("what does not exist is a 404 that says what was asked for", async () => {
    await using t = setup();
    const missing = ["/v1/rollouts/x", "/v1/rollouts/x/trajectory", "/nowhere"];
    for (const path of missing) {
      const { status, body } = await t.send("GET", path);
      expect([status, body.error.code]).toEqual([404, "not_found"]);
    }
    expect((await t.send("DELETE", "/v1/rollouts/x")).status).toBe(404);
    expect((await t.send("DELETE", "/v1/backends/x")).status).toBe(404);
  });
});

test("health, readiness and status tell what the service does", async () => {
  await using t = setup({ held: true });
  expect((await t.send("GET", "/healthz")).body).toEqual({ status: "ok", version: "0.0.0-test" });
  expect((await t.send("GET", "/readyz?exclude=backend")).body).toMatchObject({ ready: true });
  await t.send("POST", "/v1/rollouts", ECHO);
  const status = await waitFor(async () => {
    const { body } = await t.send("GET", "/v1/status");
    return body.stages.init.active === 1 && body;
  }, "the rollout to be active");
  expect(status.unfinished).toBe(1);
  expect(status.stages.init).toEqual({ pending: 0, active: 1, slots: 8 });
  expect(status.weights).toEqual({ version: null, paused: null });
});

test("readiness is 503 and names what is missing, unless the probe leaves it out", async () => {
  const lost = { what: "driver", why: "it is gone", mend: "bring it back" } as const;
  await using t = setup({ missing: [lost] });
  const probe = async (query = "") => {
    const { status, body } = await t.send("GET", `/readyz${query}`);
    return {
      status,
      ready: body.ready,
      missing: body.missing?.map((one: typeof lost) => one.what),
    };
  };
  expect(await probe()).toEqual({ status: 503, ready: false, missing: ["driver", "backend"] });
  expect((await t.send("GET", "/readyz")).body.missing[0]).toEqual(lost);
  expect(await probe("?exclude=driver")).toMatchObject({ status: 503, missing: ["backend"] });
  expect(await probe("?exclude=driver,backend")).toEqual({ status: 200, ready: true, missing: [] });
  await t.send("POST", "/v1/backends", { url: "http://127.0.0.1:1/v1", model: "m" });
  expect(await probe("?exclude=driver")).toEqual({ status: 200, ready: true, missing: [] });
  expect((await t.send("GET", "/readyz?exclude=engine")).status).toBe(400);
});

test("a backend is added, listed and removed; an address that is none is refused", async () => {
  await using t = setup();
  const url = "http://127.0.0.1:8000/v1";
  expect((await t.send("POST", "/v1/backends", { url })).status).toBe(201);
  expect((await t.send("GET", "/v1/backends")).body.backends).toMatchObject([
    { id: "b1", url, model: "only", in_flight: 0, engine: null, model_dir: null },
  ]);
  expect((await t.send("GET", "/v1/backends/b1")).body).toMatchObject({ id: "b1", decisions: [] });
  expect((await t.send("POST", "/v1/backends/b1/drain?trajectories=move")).body).toEqual({
    draining: "b1",
    trajectories: "move",
  });
  const wrong = await t.send("DELETE", "/v1/backends/b1?trajectories=drop");
  expect([wrong.status, wrong.body.error.field]).toEqual([400, "trajectories"]);
  expect((await t.send("DELETE", "/v1/backends/b1")).body).toMatchObject({ removed: "b1" });
  expect((await t.send("POST", "/v1/backends/b1/drain")).status).toBe(404);
  for (const bad of ["file:///etc/passwd", "localhost:8000", ""]) {
    const { status, body } = await t.send("POST", "/v1/backends", { url: bad });
    expect([status, body.error.field]).toEqual([400, "url"]);
  }
});
