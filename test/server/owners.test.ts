import { describe, expect, test } from "bun:test";
import { OPERATIONS } from "../../src/server/openapi/operations.ts";
import { waitFor } from "../support/wait-for.ts";
import { ECHO, setup as setupServer } from "./setup.ts";

const [A, B, OPERATOR] = ["token:a", "token:b", "token:operator"];
const GROUP = { ...ECHO, num_samples: 2 };
const BATCH = { open: true, num_samples: 2, goal: { groups: 1 }, series: "train" };

/** A service whose clients have tokens. */
function setup(options: Parameters<typeof setupServer>[0] = {}) {
  const t = setupServer({ compat: true, ...options });
  const ask = async (client: string, method: string, path: string, body?: unknown) => {
    const init: RequestInit = { method };
    if (body !== undefined) {
      init.headers = { "content-type": "application/json" };
      init.body = JSON.stringify(body);
    }
    const response = await t.app.request(path, init, { ...t.env, client });
    const text = await response.text();
    // biome-ignore lint/suspicious/noExplicitAny: what the assertions look at is what is tested.
    const reply: any = text.startsWith("{") ? JSON.parse(text) : text;
    return { status: response.status, body: reply, text };
  };
  return Object.assign(t, { ask });
}

/** The same with a rollout, a group and a batch of A, each called `mine`, that wait. */
async function withWork() {
  const t = setup({ held: true });
  const rollout = { id: "mine", ...ECHO, labels: { step: "7" }, lease_ms: 60_000 };
  expect((await t.ask(A, "POST", "/v1/rollouts", rollout)).status).toBe(201);
  expect((await t.ask(A, "POST", "/v1/groups", { id: "mine", ...GROUP })).status).toBe(201);
  const batch = { id: "mine", ...BATCH, instances: [ECHO.instance] };
  expect((await t.ask(A, "POST", "/v1/batches", batch)).status).toBe(201);
  return Object.assign(t, { rollout, batch });
}

const ROUTES = OPERATIONS.map(({ route }) => {
  const [method = "", path = ""] = route.split(" ");
  return { route, method, path };
});

describe("what one token's client has submitted", () => {
  test("is not there for another one, on any route that names it", async () => {
    await using t = await withWork();
    const named = ROUTES.filter(({ path }) =>
      /^\/v1\/(rollouts|groups|batches)\/\{id\}/.test(path),
    );
    for (const { route, method, path } of named) {
      const body = route.endsWith("/instances") ? { instances: [ECHO.instance] } : undefined;
      const other = await t.ask(B, method, path.replace("{id}", "mine"), body);
      const none = await t.ask(B, method, path.replace("{id}", "none"), body);
      expect([route, other.status]).toEqual([route, 404]);
      // Not to be told apart from what does not exist.
      expect([route, other.text]).toEqual([
        route,
        none.text.replaceAll('\\"none\\"', '\\"mine\\"'),
      ]);
    }
    const { body } = await t.ask(A, "GET", "/v1/rollouts");
    const states = body.rollouts.map(({ ending }: { ending: unknown }) => ending);
    expect(states).toEqual(states.map(() => null));
  });

  test("is in no list, count, event or log of another one, and in all of its own and the operator's", async () => {
    await using t = await withWork();
    await t.ask(OPERATOR, "POST", "/start");
    for (const [client, sees] of [
      [A, true],
      [B, false],
      [OPERATOR, true],
      ["socket", true],
      ["127.0.0.1", true],
    ] as const) {
      for (const path of [
        "/v1/rollouts",
        "/v1/rollouts?label=step:7",
        "/v1/groups",
        "/v1/batches",
      ]) {
        const { status, text } = await t.ask(client, "GET", path);
        expect([client, path, status, text.includes('"mine')]).toEqual([client, path, 200, sees]);
      }
      const status = await t.ask(client, "GET", "/v1/status");
      expect([client, status.body.unfinished > 0]).toEqual([client, sees]);
      const prorl = await t.ask(client, "GET", "/status");
      expect([client, prorl.status, prorl.body.jobs > 0]).toEqual([client, 200, sees]);
      const decided = await t.ask(client, "GET", "/v1/backends/decisions");
      expect(decided.status).toBe(200);
    }
  });

  test("is not cancelled, renewed, taken over or begun anew by another one", async () => {
    await using t = await withWork();
    const cancelled = await t.ask(B, "DELETE", "/v1/rollouts?label=step:7");
    expect(cancelled.body).toEqual({ cancelled: 0 });
    const byIds = await t.ask(B, "POST", "/v1/rollouts/renew", { ids: ["mine"] });
    expect(byIds.body).toEqual({ renewed: 0, missing: ["mine"] });
    const byLabels = await t.ask(B, "POST", "/v1/rollouts/renew", { labels: { step: "7" } });
    expect(byLabels.body).toEqual({ renewed: 0, missing: [] });
    for (const [path, body] of [
      ["/v1/rollouts", t.rollout],
      ["/v1/groups", { id: "mine", ...GROUP }],
      ["/v1/batches", t.batch],
    ] as const) {
      const again = await t.ask(B, "POST", path, body);
      expect([path, again.status, again.body.error.code]).toEqual([path, 422, "id_conflict"]);
      expect([path, (await t.ask(A, "POST", path, body)).status]).toEqual([path, 200]);
    }
    const { id: _id, ...rest } = t.batch;
    const carried = await t.ask(B, "POST", "/v1/batches", { ...rest, carry_from: "mine" });
    expect([carried.status, carried.body.error.field]).toEqual([404, "carry_from"]);
    // Its own series of that name, which waits for nobody.
    expect((await t.ask(B, "POST", "/v1/batches", rest)).status).toBe(201);
    expect((await t.ask("socket", "POST", "/v1/batches", rest)).status).toBe(201);
    const mine = await t.ask(A, "POST", "/v1/batches", rest);
    expect([mine.status, mine.body.error.field]).toEqual([400, "series"]);
    const { body } = await t.ask(OPERATOR, "DELETE", "/v1/rollouts?label=step:7");
    expect(body).toEqual({ cancelled: 1 });
  });

  test("tells another one nothing as a stream of events, finished or live", async () => {
    await using t = setup();
    const heard = new Map<string, string>();
    const gone = new AbortController();
    const readers = [A, B].map(async (client) => {
      const path = "/v1/events?after=0&live=true&groups=true";
      const init = { signal: gone.signal };
      const { body } = await t.app.request(path, init, { ...t.env, client });
      heard.set(client, "");
      for await (const chunk of body as ReadableStream<Uint8Array>) {
        heard.set(client, heard.get(client) + Buffer.from(chunk).toString());
      }
    });
    await t.ask(A, "POST", "/v1/rollouts?wait_ms=20000", { id: "of-a", ...ECHO });
    await t.ask(A, "POST", "/v1/groups?wait_ms=20000", { id: "group-a", ...GROUP });
    await t.ask(B, "POST", "/v1/rollouts?wait_ms=20000", { id: "of-b", ...ECHO });
    await waitFor(() => heard.get(B)?.includes("event: finished"), "B's own event");
    await waitFor(() => heard.get(A)?.includes("event: group_"), "A's group");
    expect(heard.get(B)).not.toContain("-a");
    expect(heard.get(A)).not.toContain("of-b");
    const listed = await t.ask(B, "GET", "/v1/rollouts?order=finished");
    expect(listed.body.rollouts.map(({ id }: { id: string }) => id)).toEqual(["of-b"]);
    const difficulty = async (client: string) =>
      (await t.ask(client, "GET", "/v1/instances")).body.instances.map(
        ({ key }: { key: string }) => key.split(":")[0],
      );
    expect(await difficulty(A)).toEqual(["echo"]);
    expect(await difficulty(B)).toEqual([]);
    expect(await difficulty("socket")).toEqual(["token"]);
    gone.abort();
    await Promise.all(readers);
  });
});

test("what all clients share, inference servers and weights, only the operator changes", async () => {
  await using t = setup();
  const changes: [path: string, body?: unknown, method?: string][] = [
    ["/v1/backends", { url: "http://127.0.0.1:1/v1" }],
    ["/v1/backends/x/drain"],
    ["/v1/backends/x", undefined, "DELETE"],
    ["/v1/weights", { version: 1 }],
    ["/v1/weights/pause", {}],
    ["/v1/weights/resume"],
    ["/start"],
    ["/stop"],
    ["/add_llm_server", { address: "http://127.0.0.1:1" }],
    ["/clear_llm_server"],
  ];
  for (const [path, body, method = "POST"] of changes) {
    expect([path, (await t.ask(A, method, path, body)).status]).toEqual([path, 403]);
  }
  for (const path of ["/v1/weights/resume", "/start"]) {
    for (const client of [OPERATOR, "socket"]) {
      const { status } = await t.ask(client, "POST", path);
      expect([path, status === 403]).toEqual([path, false]);
    }
  }
});

describe("the compatible APIs", () => {
  test("cancel by a client's own name for a call, and no other client's", async () => {
    await using t = setup({ held: true });
    await t.ask(OPERATOR, "POST", "/start");
    await t.ask(OPERATOR, "POST", "/add_llm_server", { address: "http://127.0.0.1:1" });
    const call = { instance: { data_source: "echo" }, job_id: "j", sampling_params: {} };
    let isOver = false;
    const open = t.ask(A, "POST", "/process", call).finally(() => {
      isOver = true;
    });
    await waitFor(
      () => t.threads.some((thread) => thread.starts().length > 0),
      "the call to begin",
    );
    expect((await t.ask(B, "POST", "/cancel", { job_id: "j" })).body.found).toBe(false);
    expect((await t.ask(A, "POST", "/cancel", { job_id: "j" })).body.found).toBe(true);
    await waitFor(() => {
      for (const thread of t.threads) for (const start of thread.starts()) thread.finish(start);
      return isOver;
    }, "the answer");
    await open;
  });

  test("give an abandoned rollout to the client that comes back, not to another one with the same body", async () => {
    await using t = setup({ held: true });
    const run = { data_source: "echo", responses_create_params: { input: "Hi." } };
    const leave = async (client: string) => {
      const left = new AbortController();
      const headers = { "content-type": "application/json" };
      const init = { method: "POST", headers, body: JSON.stringify(run), signal: left.signal };
      const before = t.store.counts.total;
      const open = t.app.request("/run", init, { ...t.env, client });
      await waitFor(() => t.store.counts.total > before, "a rollout of its own");
      left.abort();
      await open;
    };
    await leave(A);
    await leave(B);
    let answered = 0;
    const back = [A, B].map((client) =>
      t.ask(client, "POST", "/run", run).then(({ status }) => {
        expect(status).toBe(200);
        answered++;
      }),
    );
    await waitFor(() => {
      for (const thread of t.threads) for (const start of thread.starts()) thread.finish(start);
      return answered === 2;
    }, "both answers");
    await Promise.all(back);
    expect((await t.ask(OPERATOR, "GET", "/v1/rollouts")).body.rollouts).toHaveLength(2);
  });
});
