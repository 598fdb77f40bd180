import { expect, spyOn, test } from "bun:test";
import { createHmac } from "node:crypto";
import { httpPost } from "../../src/lib/http-post.ts";
import { networkOf, resolveAllowed } from "../../src/lib/network.ts";
import { Callbacks } from "../../src/pipeline/callbacks.ts";
import { Store } from "../../src/store/store.ts";
import { createLog } from "../../src/telemetry/log.ts";
import { CANCEL, jobAfter, storeJob } from "../support/jobs.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const SECRET = "0123456789abcdef";

/** A client that answers its callbacks with `statuses`, one after the other, and then with 200. */
function setup(statuses: number[] = []) {
  const dir = tempDir();
  const received: { body: string; signature: string; rollout: string }[] = [];
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    async fetch(request) {
      received.push({
        body: await request.text(),
        signature: request.headers.get("rolloutd-signature") ?? "",
        rollout: request.headers.get("rolloutd-rollout") ?? "",
      });
      const status = statuses.shift() ?? 200;
      return new Response(null, { status, headers: status === 302 ? { location: "/away" } : {} });
    },
  });
  const store = new Store(dir.path);
  const clock = { ms: 1_000_000, nowMs: () => clock.ms };
  const start = () =>
    new Callbacks({
      ...{ store, clock, log: createLog("silent"), secret: SECRET },
      render: ({ id, state }) => JSON.stringify({ id, state }),
      async post(text, headers, body) {
        const url = new URL(text);
        const address = await resolveAllowed(url, ["loopback"]);
        const sent = { url, address, headers, body, maxReplyBytes: 0 };
        return (await httpPost(sent, AbortSignal.timeout(5000))).status;
      },
    });
  return {
    url: `${server.url}hook?x=1`,
    store,
    clock,
    received,
    start,
    finish(id: string, callbackUrl: string) {
      const seq = storeJob(store, id, [], { callbackUrl });
      store.transaction(() => store.updateJob(seq, jobAfter(id), jobAfter(id, CANCEL)));
    },
    [Symbol.dispose]() {
      server.stop(true);
      store[Symbol.dispose]();
      dir[Symbol.dispose]();
    },
  };
}

test("a client is told once that its rollout is over, with a signature over time and body", async () => {
  using t = setup();
  t.finish("a", t.url);
  const callbacks = t.start();
  await waitFor(() => callbacks.delivered === 1, "the callback");
  callbacks.stop();
  const [{ body, signature, rollout }] = t.received as [(typeof t.received)[0]];
  const mac = createHmac("sha256", SECRET).update(`1000.${body}`).digest("hex");
  expect([body, signature, rollout]).toEqual([
    '{"id":"a","state":"cancelled"}',
    `t=1000,v1=${mac}`,
    "a",
  ]);
  expect([t.received.length, t.store.callbacks.count()]).toEqual([1, 0]);
});

test("what can't be written down, as on a full disk, is not sent again meanwhile", async () => {
  using t = setup();
  t.finish("a", t.url);
  let refused = 0;
  using transaction = spyOn(t.store, "transaction");
  transaction.mockImplementationOnce(() => {
    refused++;
    throw new Error("database or disk is full");
  });
  const callbacks = t.start();
  await waitFor(() => callbacks.delivered === 1, "the callback");
  callbacks.stop();
  expect([refused, t.received.length, t.store.callbacks.count()]).toEqual([1, 1, 0]);
});

test("one that refuses is asked again later, also after a restart, and a redirect is a refusal", async () => {
  using t = setup([503, 302]);
  t.finish("a", t.url);
  for (const attempts of [1, 2]) {
    const callbacks = t.start();
    await waitFor(() => t.received.length === attempts, "an attempt");
    await waitFor(() => t.store.callbacks.due(t.clock.ms, 9).length === 0, "its booking");
    callbacks.stop();
    expect(t.store.callbacks.count()).toBe(1);
    t.clock.ms += 10_000;
  }
  const callbacks = t.start();
  await waitFor(() => callbacks.delivered === 1, "the callback");
  callbacks.stop();
  expect(t.received).toHaveLength(3);
});

test("one that never answers is given up, and holds up no other", async () => {
  using t = setup();
  t.finish("dead", "http://127.0.0.1:1/");
  t.finish("elsewhere", "http://8.8.8.8/");
  t.finish("a", t.url);
  const callbacks = t.start();
  await waitFor(() => callbacks.delivered === 1, "the callback");
  await waitFor(() => {
    t.clock.ms += 1_000_000;
    return callbacks.failed === 2;
  }, "the others to be given up");
  callbacks.stop();
  expect(t.store.callbacks.count()).toBe(0);
  expect(networkOf("8.8.8.8")).toBe("public");
});
