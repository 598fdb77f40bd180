import { expect, test } from "bun:test";
import { pack } from "msgpackr";
import { OPERATIONS } from "../../src/server/openapi/operations.ts";
import { ECHO, setup } from "./setup.ts";

const COMPAT = ["/process", "/cancel", "/add_llm_server", "/run", "/aggregate_metrics"];
const TAKING_BODIES = [
  ...OPERATIONS.flatMap(({ route, body }) => (body ? [route.split(" ")[1] as string] : [])),
  ...COMPAT,
];
const JSON_TYPE = { "content-type": "application/json" };
const REFUSED: [headers: Record<string, string>, body: string | Uint8Array, field: string][] = [
  [{ "content-type": "application/msgpack" }, pack(ECHO), "content-type"],
  [{ "content-type": "application/x-protobuf" }, "x", "content-type"],
  // What a web page may send to any address without being asked.
  [{ "content-type": "text/plain;charset=UTF-8" }, JSON.stringify(ECHO), "content-type"],
  [{ "content-type": "text/json" }, JSON.stringify(ECHO), "content-type"],
  [{ "content-type": "application/x-www-form-urlencoded" }, JSON.stringify(ECHO), "content-type"],
  [{ "content-type": "application/json, text/plain" }, JSON.stringify(ECHO), "content-type"],
  [{}, Buffer.from(JSON.stringify(ECHO)), "content-type"],
  [{ "content-type": "multipart/form-data; boundary=x" }, JSON.stringify(ECHO), "content-type"],
  [{ ...JSON_TYPE, "content-encoding": "gzip" }, Bun.gzipSync("{}"), "content-encoding"],
  // 20 MB in 20 kB: nobody unpacks it.
  [
    { ...JSON_TYPE, "content-encoding": "gzip" },
    Bun.gzipSync(Buffer.alloc(20_000_000, " ")),
    "content-encoding",
  ],
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

test("JSON is taken under each of its names", async () => {
  await using t = setup();
  const types = ["application/json", "Application/JSON; charset=utf-8", "application/vnd.x+json"];
  for (const type of types) {
    const headers = { "content-type": type, "content-encoding": "identity" };
    const init = { method: "POST", headers, body: JSON.stringify(ECHO) };
    const response = await t.app.request("/v1/rollouts", init, t.env);
    expect([type, response.status]).toEqual([type, 201]);
  }
});
