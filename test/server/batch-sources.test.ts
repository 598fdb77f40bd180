import { describe, expect, test } from "bun:test";
import { cpSync, symlinkSync, writeFileSync } from "node:fs";
import { groupService } from "../support/group-service.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const PLAN = { num_samples: 2, goal: { groups: 2 }, max_rollouts: 6 };

const line = (index: number) =>
  `${JSON.stringify({ data_source: "echo", instance_id: `row-${index}` })}\n`;
const lines = (count: number) => Array.from({ length: count }, (_, at) => line(at)).join("");

/** A folder with the rows in it, and one for the service's data. */
function setup(text: string) {
  const dir = tempDir();
  const file = dir.file("rows.jsonl");
  writeFileSync(file, text);
  return {
    dir,
    file,
    rowsDir: dir.path,
    data: tempDir(),
    [Symbol.dispose]() {
      dir[Symbol.dispose]();
      this.data[Symbol.dispose]();
    },
  };
}

type Service = ReturnType<typeof groupService>;

/** Gives the group of a row its two rewards, whichever batch it was read by. */
async function decide(t: Service, row: number, ...rewards: [number, number]) {
  for (const [sample, reward] of rewards.entries()) {
    const is = (id: string) => id.endsWith(`-${row}-${sample}`);
    await t.give(await waitFor(() => [...t.waiting.keys()].find(is), `row ${row} to run`), reward);
  }
}

const batch = async (t: Service, id = "b") =>
  (await t.send("GET", `/v1/batches/${id}?wait_ms=20000`)).body;

describe("a batch that reads its rows from a file", () => {
  test("reads no further than it needs, and goes on where it was after a restart", async () => {
    using s = setup(lines(500));
    using copy = tempDir();
    const { rowsDir, file } = s;
    const first = groupService(s.data.path, { rowsDir });
    await first.send("POST", "/v1/batches", { id: "b", ...PLAN, source: { file } });
    for (let at = 0; at < 60; at++) await decide(first, at, 1, 1);
    await waitFor(() => first.waiting.has("b-60-1"), "the next row to run");
    const before = (await first.send("GET", "/v1/batches/b")).body;
    expect(before.source.lines).toBeGreaterThan(60);
    expect(before.source.lines).toBeLessThan(200);
    cpSync(s.data.path, copy.path, { recursive: true });
    await first[Symbol.asyncDispose]();
    await using t = groupService(copy.path, { rowsDir });
    for (let at = 60; at < 200; at++) await decide(t, at, 1, 1);
    for (let at = 200; at < 202; at++) await decide(t, at, 0, 1);
    expect(await batch(t)).toMatchObject({ state: "complete", delivered: 2 });
    const { body } = await t.send("GET", "/v1/batches/b/groups");
    const rows = body.groups.map((group: { instance: object }) => group.instance);
    expect(rows).toMatchObject([{ instance_id: "row-200" }, { instance_id: "row-201" }]);
  });

  test("is exhausted at the end of it", async () => {
    using s = setup(`\n${lines(1)}\n${line(1).trim()}`);
    await using t = groupService(s.data.path, s);
    await t.send("POST", "/v1/batches", { id: "b", ...PLAN, source: { file: s.file } });
    await decide(t, 0, 0, 1);
    await decide(t, 1, 1, 1);
    const { state, delivered, source } = await batch(t);
    expect([state, delivered, source.lines]).toEqual(["exhausted", 1, 4]);
  });

  test("fails where that is nothing that can be read", async () => {
    using s = setup("");
    const file = s.dir.file("socket");
    using _socket = Bun.listen({ unix: file, socket: { data() {} } });
    await using t = groupService(s.data.path, s);
    await t.send("POST", "/v1/batches", { id: "b", ...PLAN, source: { file } });
    const { state, error } = await batch(t);
    expect([state, error.code, error.field]).toEqual(["failed", "invalid_field", "source.file"]);
  });

  const BAD = [
    ["{", "bad_json"],
    ['{"instance_id": "x"}', "invalid_field"],
    ['{"data_source": "nope"}', "unknown_task_kind"],
    [`{"data_source": "echo", "x": "${"x".repeat(10_000)}"}`, "invalid_field"],
  ] as const;
  for (const [bad, code] of BAD) {
    test(`fails at a line that is bad, by its number: ${bad.slice(0, 40)}`, async () => {
      using s = setup(`${lines(2)}${bad}\n${lines(2)}`);
      await using t = groupService(s.data.path, s);
      await t.send("POST", "/v1/batches", { id: "b", ...PLAN, source: { file: s.file } });
      const { state, error } = await batch(t);
      expect([state, error.code, error.field]).toEqual(["failed", code, "source"]);
      expect(error.message).toMatch(/rows\.jsonl:3: |line 3 /);
      await waitFor(() => t.scheduler.unfinished === 0, "what is left to end");
    });
  }

  test("leaves the rest of it to the batch that carries on", async () => {
    using s = setup(lines(120));
    await using t = groupService(s.data.path, s);
    const goal = { groups: 1 };
    const source = { file: s.file };
    const kept = { ...PLAN, goal, source, unfinished: "keep" };
    await t.send("POST", "/v1/batches", { id: "b", ...kept });
    await decide(t, 0, 0, 1);
    await batch(t);
    await t.send("POST", "/v1/batches", { id: "n", ...PLAN, goal, carry_from: "b" });
    for (let at = 1; at < 119; at++) await decide(t, at, 1, 1);
    await decide(t, 119, 0, 1);
    expect(await batch(t, "n")).toMatchObject({ state: "complete", delivered: 1 });
    const none = await t.send("POST", "/v1/batches", { id: "o", ...PLAN, goal, carry_from: "b" });
    expect([none.status, none.body.error.field]).toEqual([400, "carry_from"]);
    expect(none.body.error.message).toContain('batch "b" has left nothing');
  });

  test("leaves what it read ahead also where it throws away what is unfinished", async () => {
    using s = setup(lines(120));
    await using t = groupService(s.data.path, s);
    const goal = { groups: 1 };
    await t.send("POST", "/v1/batches", { id: "b", ...PLAN, goal, source: { file: s.file } });
    await decide(t, 0, 0, 1);
    expect((await batch(t)).groups).toMatchObject({ complete: 1, ended: 2, waiting: 97 });
    await t.send("POST", "/v1/batches", { id: "n", ...PLAN, goal, carry_from: "b" });
    await decide(t, 3, 0, 1);
    expect(await batch(t, "n")).toMatchObject({ state: "complete", source: { lines: 100 } });
  });
});

describe("a batch that reads its rows from a URL", () => {
  /** Serves ranges of `text`, after so many answers of 503. */
  function serveRows(text: string, { failures = 0, ranges = true } = {}) {
    let left = failures;
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch(request) {
        if (left-- > 0) return new Response("later", { status: 503 });
        const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.get("range") ?? "") ?? [];
        const bytes = Buffer.from(text);
        if (!ranges) return new Response(bytes);
        if (Number(from) >= bytes.length) return new Response(null, { status: 416 });
        return new Response(bytes.subarray(Number(from), Number(to) + 1), { status: 206 });
      },
    });
    return {
      url: `http://127.0.0.1:${server.port}`,
      [Symbol.dispose]: () => void server.stop(true),
    };
  }

  test("reads it part by part, and tries again when the server fails", async () => {
    using data = tempDir();
    using rows = serveRows(lines(120), { failures: 1 });
    await using t = groupService(data.path, { rowsUrl: rows.url });
    const source = { url: `${rows.url}/rows.jsonl` };
    await t.send("POST", "/v1/batches", { id: "b", ...PLAN, source });
    for (let at = 0; at < 118; at++) await decide(t, at, 1, 1);
    await decide(t, 118, 0, 1);
    await decide(t, 119, 0, 1);
    expect(await batch(t)).toMatchObject({ state: "complete", delivered: 2 });
  });

  test("fails where the server gives no ranges", async () => {
    using data = tempDir();
    using rows = serveRows(lines(3), { ranges: false });
    await using t = groupService(data.path, { rowsUrl: rows.url });
    const source = { url: `${rows.url}/rows.jsonl` };
    await t.send("POST", "/v1/batches", { id: "b", ...PLAN, source });
    const { state, error } = await batch(t);
    expect([state, error.code, error.field]).toEqual(["failed", "invalid_field", "source.url"]);
  });
});

test("a source that the operator has not allowed is refused, and all files elsewhere look the same", async () => {
  using s = setup(lines(1));
  const elsewhere = s.data.file("rows.jsonl");
  writeFileSync(elsewhere, lines(1));
  symlinkSync(elsewhere, s.dir.file("link"));
  await using t = groupService(s.data.file("data"), s);
  const refused = async (source: unknown, body = {}) => {
    const reply = await t.send("POST", "/v1/batches", { ...PLAN, ...body, source });
    return [reply.status, reply.body.error?.field];
  };
  const files = [elsewhere, s.dir.file("link"), s.dir.file("nobody"), "/etc/passwd", s.dir.path];
  for (const file of files) expect(await refused({ file })).toEqual([400, "source.file"]);
  expect(await refused({ file: "rows.jsonl" })).toEqual([400, "source.file"]);
  expect(await refused({ url: "http://127.0.0.1:1/x" })).toEqual([400, "source.url"]);
  expect(await refused({})).toEqual([400, "source"]);
  expect(await refused({ file: s.file }, { open: true })).toEqual([400, "source"]);
  await using none = groupService(s.data.file("other"));
  const { body } = await none.send("POST", "/v1/batches", { ...PLAN, source: { file: s.file } });
  expect(body.error).toMatchObject({
    field: "source.file",
    mend: expect.stringContaining("--rows-dir"),
  });
});
