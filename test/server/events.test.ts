import { expect, test } from "bun:test";
import { once } from "node:events";
import { connect } from "node:net";
import { Hono } from "hono";
import { listen as listenOn } from "../../src/server/listen.ts";
import type { ServerEnv } from "../../src/server/parts.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";
import { ECHO, setup } from "./setup.ts";

type Setup = ReturnType<typeof setup>;

/** Opens a stream and collects its events. */
async function listen(t: Setup, query = "", lastEventId?: string) {
  const headers = new Headers();
  if (lastEventId !== undefined) headers.set("last-event-id", lastEventId);
  const controller = new AbortController();
  const init = { headers, signal: controller.signal };
  const response = await t.app.request(`/v1/events${query}`, init, t.env);
  const events: { id?: string; event: string; data: { id: string; state: string } }[] = [];
  const reader = (response.body as ReadableStream<Uint8Array>).getReader();
  const done = (async () => {
    let text = "";
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      text += Buffer.from(value).toString();
      const blocks = text.split("\n\n");
      text = blocks.pop() ?? "";
      for (const block of blocks) {
        if (block.startsWith(":")) continue;
        const fields = Object.fromEntries(
          block.split("\n").map((line) => [line.split(": ", 1)[0], line.replace(/^\w+: /, "")]),
        );
        events.push({ ...fields, data: JSON.parse(fields.data ?? "null") } as never);
      }
    }
  })();
  return {
    status: response.status,
    events,
    async close() {
      await reader.cancel();
      await done;
    },
  };
}

const submit = (t: Setup, ids: string[]) =>
  t.send("POST", "/v1/rollouts", { rollouts: ids.map((id) => ({ id, ...ECHO })) });

test("a reader that comes back with the last id misses nothing and sees nothing twice", async () => {
  await using t = setup();
  const first = await listen(t, "?after=0");
  await submit(t, ["a", "b", "c"]);
  await waitFor(() => first.events.length === 3, "three events");
  await first.close();
  await submit(t, ["d"]);
  await t.send("GET", "/v1/rollouts/d?wait_ms=20000");
  const second = await listen(t, "", first.events[1]?.id);
  await waitFor(() => second.events.length === 2, "what came since");
  await submit(t, ["e"]);
  await waitFor(() => second.events.length === 3, "what comes now");
  await second.close();
  const seen = [...first.events.slice(0, 2), ...second.events];
  expect(seen.map(({ data }) => data.id).toSorted()).toEqual(["a", "b", "c", "d", "e"]);
  expect(new Set(seen.map(({ id }) => id)).size).toBe(5);
});

test("without a position it begins now, and live events tell every change", async () => {
  await using t = setup();
  await submit(t, ["before"]);
  await t.send("GET", "/v1/rollouts/before?wait_ms=20000");
  const stream = await listen(t, "?live=true");
  await submit(t, ["a"]);
  await waitFor(() => stream.events.some(({ event }) => event === "finished"), "the end");
  await stream.close();
  const told = stream.events.map(({ event, data }) => [event, data.id]);
  expect(told.filter(([event]) => event === "active")).toHaveLength(3);
  expect(told.at(0)).toEqual(["pending", "a"]);
  expect(told.every(([, id]) => id === "a")).toBe(true);
});

test("the ends of groups and batches have their place in it, each once for who comes back", async () => {
  await using t = setup();
  const { instance } = ECHO;
  const first = await listen(t, "?after=0&groups=true");
  await t.send("POST", "/v1/groups?wait_ms=20000", { id: "g", num_samples: 2, instance });
  const batch = { id: "b", num_samples: 2, goal: { groups: 1 }, instances: [instance] };
  await t.send("POST", "/v1/batches", batch);
  const ends = (events: typeof first.events) =>
    events.filter(({ event }) => event !== "finished").map(({ event, data }) => [event, data.id]);
  const all = [
    ["group_complete", "g"],
    ["group_complete", "b-0"],
    ["batch_finished", "b"],
  ];
  await waitFor(() => ends(first.events).length === 3, "the batch to end");
  expect(ends(first.events)).toEqual(all);
  expect(first.events.find(({ data }) => data.id === "b-0")?.data).toEqual({
    ...{ id: "b-0", state: "complete", error: null },
    ...{ batch: "b", informative: false, delivered: null },
  } as never);
  expect(first.events.find(({ data }) => data.id === "b")?.data).toMatchObject({
    ...{ id: "b", state: "exhausted", error: { code: "batch_exhausted" } },
  });
  await first.close();
  // Wherever it was cut, the rest comes, and nothing twice.
  for (let cut = 1; cut < first.events.length; cut++) {
    const again = await listen(t, "?groups=true", first.events[cut - 1]?.id);
    const left = first.events.length - cut;
    await waitFor(() => again.events.length === left, "what comes behind it");
    await again.close();
    const names = (events: typeof first.events) => events.map(({ data }) => data.id).toSorted();
    expect(names(again.events)).toEqual(names(first.events.slice(cut)));
  }
  const without = await listen(t, "?after=0");
  await waitFor(() => without.events.length === 4, "the rollouts");
  await without.close();
  expect(ends(without.events)).toEqual([]);
});

test("filters by label, and counts streams: more than allowed are refused", async () => {
  await using t = setup();
  const wanted = await listen(t, "?label=x:1");
  const other = await listen(t);
  const refused = await t.app.request("/v1/events", {}, t.env);
  expect([refused.status, refused.headers.get("retry-after")]).toEqual([429, "1"]);
  await t.send("POST", "/v1/rollouts", { id: "no", ...ECHO });
  await t.send("POST", "/v1/rollouts", { id: "yes", ...ECHO, labels: { x: "1" } });
  await waitFor(() => wanted.events.length === 1, "the event");
  await other.close();
  await wanted.close();
  expect(wanted.events[0]?.data.id).toBe("yes");
  const again = await listen(t);
  expect(again.status).toBe(200);
  await again.close();
});

test("an id that is none of the stream's is refused", async () => {
  await using t = setup();
  for (const id of ["x", "1.", "1.x", "-1", "1e3"]) {
    const init = { headers: { "last-event-id": id } };
    expect((await t.app.request("/v1/events", init, t.env)).status).toBe(400);
  }
});

/** A log without an end, which no buffer on the way holds, and one reader of it that takes nothing. */
async function neverReading(t: Setup, way: "TCP" | "socket") {
  const dir = tempDir();
  await submit(t, ["a"]);
  await t.send("GET", "/v1/rollouts/a?wait_ms=20000");
  const list = t.store.list.bind(t.store);
  t.store.list = (filter) => {
    const page = list({ ...filter, after: 0 });
    return { ...page, rows: Array(50).fill(page.rows[0]), more: true };
  };
  const [asked, gone] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const watched = new Hono<ServerEnv>();
  watched.use((c, next) => {
    asked.resolve();
    c.req.raw.signal.addEventListener("abort", () => gone.resolve());
    return next();
  });
  watched.route("/", t.app);
  const nobody = { tokens: null, anonymous: false, tls: null, maxRequests: 10 };
  const socket = dir.file("s.sock");
  const service = await listenOn(watched, {
    ...{ host: "127.0.0.1", port: 0, socket, ...nobody },
    ...{ durable: () => t.store.durable(), stopMs: 100 },
  });
  const { port, host } = new URL(service.url);
  const to = way === "TCP" ? { port: Number(port), host: "127.0.0.1" } : { path: socket };
  const reader = connect(to).pause();
  reader.write(`GET /v1/events?after=0 HTTP/1.1\r\nhost: ${host}\r\n\r\n`);
  return {
    reader,
    asked: asked.promise,
    gone: gone.promise,
    stop: () => service.stop(),
    async [Symbol.asyncDispose]() {
      const closed = reader.closed ? null : once(reader, "close");
      reader.destroy();
      await closed;
      await service.stop();
      dir[Symbol.dispose]();
    },
  };
}

test("P10: a reader by TCP that takes nothing is cut, although it stays connected", async () => {
  await using t = setup({ slowReaderMs: 100 });
  await using slow = await neverReading(t, "TCP");
  await slow.gone;
}, 30_000);

// Bun has no timeout for a connection of a Unix socket: there one stays open until its process, which is ours, or the service ends.
test("P10: for a reader by the socket that takes nothing its stream is ended, and no more is kept", async () => {
  await using t = setup({ slowReaderMs: 100 });
  await using slow = await neverReading(t, "socket");
  const free = async () => {
    // Two streams are allowed.
    const streams = [1, 2].map(() => t.app.request("/v1/events", {}, t.env));
    const opened = (await Promise.all(streams)).filter(({ ok }) => ok);
    for (const { body } of opened) await body?.cancel();
    return opened.length;
  };
  await waitFor(async () => (await free()) === 1, "its stream");
  await waitFor(async () => (await free()) === 2, "the end of it");
  let [bytes, tail] = [0, ""];
  const ended = Promise.withResolvers<void>();
  slow.reader.on("data", (chunk: Buffer) => {
    bytes += chunk.length;
    // The last chunk of a body in chunks.
    tail = (tail + chunk.toString().slice(-5)).slice(-5);
    if (tail === "0\r\n\r\n") ended.resolve();
  });
  slow.reader.resume();
  await ended.promise;
  expect(bytes).toBeLessThan(4_000_000);
}, 30_000);

type Refusal = { error: { message: string } };

test("P10: readers by the socket that were cut are counted until they go, and refused above the limit", async () => {
  await using t = setup({ slowReaderMs: 100 });
  const open = async () => {
    const response = await t.app.request("/v1/events", {}, t.env);
    if (response.ok) await response.body?.cancel();
    const { error } = response.ok ? { error: null } : ((await response.json()) as Refusal);
    return error?.message ?? "";
  };
  const wait = (what: string, wanted: string) =>
    waitFor(async () => (await open()) === wanted, what);
  await using staying = await neverReading(t, "socket");
  {
    await using going = await neverReading(t, "socket");
    await wait("both to be cut", "too many streams that were cut are still connected");
    going.reader.destroy();
    await wait("one to be gone", "");
  }
  staying.reader.resume();
  await wait("the other to have taken its end", "");
}, 30_000);

test("P11: a reader by the socket that takes nothing does not hold up the end of the service", async () => {
  await using t = setup({ slowReaderMs: 100 });
  await using slow = await neverReading(t, "socket");
  await slow.asked;
  await slow.stop();
  await slow.gone;
}, 30_000);
