import { expect, test } from "bun:test";
import { setup } from "./setup.ts";

test("a trainer pauses, announces the new weights, which resumes, and may give a pause up", async () => {
  await using t = setup();
  const now = async () => {
    const { version, paused, history } = (await t.send("GET", "/v1/weights")).body;
    return [version, paused, history.length];
  };
  expect(await now()).toEqual([null, null, 0]);
  expect((await t.send("POST", "/v1/weights/pause", { mode: "abort" })).status).toBe(200);
  expect(await now()).toEqual([null, "abort", 0]);
  expect((await t.send("POST", "/v1/weights", { version: 7 })).body.version).toBe("7");
  expect(await now()).toEqual(["7", null, 1]);
  expect((await t.send("POST", "/v1/weights", { version: "7" })).body.history.length).toBe(1);
  await t.send("POST", "/v1/weights/pause", {});
  expect((await t.send("POST", "/v1/weights/resume")).body.paused).toBe(null);
  expect((await t.send("POST", "/v1/weights", { version: "8", mode: "keep" })).body).toMatchObject({
    ...{ version: "8", paused: null, running: 0, waiting: 0 },
  });
});

test("a pause says until when it lasts, an hour where nothing else is said", async () => {
  await using t = setup();
  const pause = async (body: object) => (await t.send("POST", "/v1/weights/pause", body)).body;
  expect(await pause({})).toMatchObject({ paused_until_ms: 3_600_000, lapsed: false });
  expect(await pause({ lease_ms: 60_000 })).toMatchObject({ paused_until_ms: 60_000 });
  const { body } = await t.send("POST", "/v1/weights/resume");
  expect(body).toMatchObject({ paused: null, paused_until_ms: null, lapsed: false });
});

test("weights without a usable version, or in a mode that is none, are refused by field", async () => {
  await using t = setup();
  const refused = async (path: string, body: unknown) => {
    const { status, body: reply } = await t.send("POST", path, body);
    return [status, reply.error.field];
  };
  expect(await refused("/v1/weights", {})).toEqual([400, "version"]);
  expect(await refused("/v1/weights", { version: "a b" })).toEqual([400, "version"]);
  expect(await refused("/v1/weights", { version: 1, mode: "now" })).toEqual([400, "mode"]);
  expect(await refused("/v1/weights/pause", { wait_ms: -1 })).toEqual([400, "wait_ms"]);
  expect(await refused("/v1/weights/pause", { lease_ms: 0 })).toEqual([400, "lease_ms"]);
});
