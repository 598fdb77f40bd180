import { expect, test } from "bun:test";
import { pack } from "msgpackr";
import { OPERATIONS } from "../../src/server/openapi/operations.ts";
import { ECHO, setup } from "./setup.ts";

const COMPAT = ["/process", "/cancel", "/add_llm_server", "/run", "/aggregate_metrics"];
const TAKING_BODIES = [
  ...OPERATIONS.flatMap(({ route, body }) => (body ? [route.split(" ")[1] as string] : [])),
  ...COMPAT,
];
const REFUSED: [headers: Record<string, string>, body: string | Uint8Array, field: string][] = [
  [{ "content-type": "application/msgpack" }, pack(ECHO), "content-type"],
  [{ "content-type": "application/x-protobuf" }, "x", "content-type"],
  [{ "content-type": "multipart/form-data; boundary=x" }, JSON.stringify(ECHO), "content-type"],
  [{ "content-encoding": "gzip" }, Bun.gzipSync(JSON.stringify(ECHO)), "content-encoding"],
  // 20 MB in 20 kB: nobody unpacks it.
  [{ "content-encoding": "gzip" }, Bun.gzipSync(Buffer.alloc(20_000_000, " ")), "content-encoding"],
];

test("a body in another form than JSON is refused with 415 and the mend, on each route that takes one", async () => {
  await using t = setup({ compat: true });
  await t.app.request("/start", { method: "POST" }, t.env);
  await t.send("POST", "/v1/batches", {
    id: "b1",
    open: true,
    num_samples: 2,
    goal: { groups: 1 },
  });
  for (const route of TAKING_BODIES) {
    const path = route.replace("{id}", "b1");
    for (const [headers, body, field] of REFUSED) {
      const response = await t.app.request(path, { method: "POST", headers, body }, t.env);
      const said = await response.text();
      expect([path, response.status]).toEqual([path, 415]);
      expect([path, said]).toEqual([path, expect.stringContaining(`a body of ${field}`)]);
      expect([path, said]).toEqual([path, expect.stringContaining("send plain JSON")]);
    }
  }
});

test("JSON is taken under each name that clients give it, and without one", async () => {
  await using t = setup();
  const types = ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json"];
  // What fetch and curl say where nobody says anything.
  for (const type of [...types, "text/plain;charset=UTF-8", "application/x-www-form-urlencoded"]) {
    const headers = { "content-type": type, "content-encoding": "identity" };
    const init = { method: "POST", headers, body: JSON.stringify(ECHO) };
    const response = await t.app.request("/v1/rollouts", init, t.env);
    expect([type, response.status]).toEqual([type, 201]);
  }
  const bytes = { method: "POST", body: Buffer.from(JSON.stringify(ECHO)) };
  expect((await t.app.request("/v1/rollouts", bytes, t.env)).status).toBe(201);
});
