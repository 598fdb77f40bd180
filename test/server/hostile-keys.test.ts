import { describe, expect, test } from "bun:test";
import { OPERATIONS } from "../../src/server/openapi/operations.ts";
import { ECHO, setup } from "./setup.ts";

/** Names that every object has, that none has, and that look like a filter's. */
const KEYS = [
  ...["__proto__", "constructor", "prototype", "toString", "hasOwnProperty", "valueOf"],
  ...["Label", "labels", "label[]", "label.x", "x", "0", "length", ""],
];
const FORMS = [
  "__proto__",
  "__proto__:",
  "__proto__:x",
  "__proto__:x,step:7",
  "step:7,__proto__:x",
];
const NO_LABELS = [
  ...FORMS,
  ...["", ",", ":", ":x", "step", "step:7,", ",step:7", "step:7,step:8", "step:7,step:7"],
  ...["[object Object]", "*", "%", "step:7%00", " step:7", "step:7;x:1", "__proto__[x]:1"],
];

const ROUTES = OPERATIONS.map(({ route, query, body }) => {
  const [method = "", path = ""] = route.split(" ");
  const shape = (query as { shape?: Record<string, unknown> } | undefined)?.shape ?? {};
  const known = path.replace("{id}", "a");
  return { route, method, path: known, names: Object.keys(shape), body };
});

/** A service with two rollouts that wait, and who they are of those in `states`. */
async function waiting() {
  const t = setup({ held: true });
  const rollouts: object[] = [
    { id: "a", ...ECHO, labels: { step: "7", constructor: "x" } },
    { id: "b", ...ECHO, labels: { step: "8" }, lease_ms: 60_000 },
  ];
  expect((await t.send("POST", "/v1/rollouts", { rollouts })).status).toBe(201);
  const live = async () => {
    const { body } = await t.send("GET", "/v1/rollouts?state=pending,active");
    return body.rollouts
      .filter(({ ending }: { ending: unknown }) => ending === null)
      .map(({ id }: { id: string }) => id);
  };
  return Object.assign(t, { live });
}

describe("a parameter of a URL", () => {
  test("that a route does not know is refused by its name, on every route", async () => {
    await using t = await waiting();
    for (const { route, method, path, names } of ROUTES) {
      for (const key of KEYS.filter((name) => !names.includes(name))) {
        const { status, body } = await t.send(method, `${path}?${encodeURIComponent(key)}=1`);
        expect([route, key, status, body.error?.code]).toEqual([route, key, 400, "unknown_field"]);
        expect([route, body.error.message]).toEqual([route, `unknown field: ${key}`]);
      }
    }
    expect(await t.live()).toEqual(["a", "b"]);
  });

  test("that is given twice, or without a value, is refused by its name", async () => {
    await using t = await waiting();
    for (const { route, method, path, names } of ROUTES) {
      for (const name of names) {
        const twice = await t.send(method, `${path}?${name}=step:7&${name}=step:8`);
        expect([route, name, twice.status, twice.body.error?.field]).toEqual([
          ...[route, name],
          ...[400, name],
        ]);
        // The cursor of difficulty is a key, and begins with none.
        if (route === "GET /v1/instances" && name === "after") continue;
        const label = name === "label" || route !== "DELETE /v1/rollouts" ? "" : "label=step:7&";
        const empty = await t.send(method, `${path}?${label}${name}=`);
        expect([route, name, empty.status, empty.body.error?.field]).toEqual([
          ...[route, name],
          ...[400, name],
        ]);
      }
    }
    expect(await t.live()).toEqual(["a", "b"]);
  });

  test("that is no number in digits is refused, where a number is wanted", async () => {
    await using t = await waiting();
    for (const value of ["0x10", "1e2", "+1", "-1", " 1", "1.0", "Infinity", "9".repeat(17)]) {
      const { status, body } = await t.send(
        "GET",
        `/v1/rollouts?limit=${encodeURIComponent(value)}`,
      );
      expect([value, status, body.error?.field]).toEqual([value, 400, "limit"]);
    }
  });
});

describe("a filter of labels", () => {
  test("that says nothing ends, renews and lists nothing", async () => {
    await using t = await waiting();
    for (const form of NO_LABELS) {
      const query = `label=${encodeURIComponent(form)}`;
      for (const [method, path] of [
        ["DELETE", "/v1/rollouts"],
        ["GET", "/v1/rollouts"],
        ["GET", "/v1/trajectories"],
        ["GET", "/v1/events"],
      ] as const) {
        const { status, body } = await t.send(method, `${path}?${query}`);
        expect([form, path, status, body.error?.field]).toEqual([form, path, 400, "label"]);
      }
    }
    for (const query of ["", "?state=pending", "?kind=echo"]) {
      const { status, body } = await t.send("DELETE", `/v1/rollouts${query}`);
      expect([query, status, body.error?.field]).toEqual([query, 400, "label"]);
    }
    for (const labels of ['{"__proto__":"x"}', "{}", "[]", '"step:7"', "null"]) {
      const renewed = await t.send("POST", "/v1/rollouts/renew", `{"labels":${labels}}`);
      expect([labels, renewed.status]).toEqual([labels, 400]);
    }
    expect(await t.live()).toEqual(["a", "b"]);
  });

  test("with a name that every object has means the rollouts that carry it, and no other", async () => {
    await using t = await waiting();
    expect((await t.send("DELETE", "/v1/rollouts?label=valueOf:x")).body).toEqual({ cancelled: 0 });
    const { body } = await t.send("DELETE", "/v1/rollouts?label=constructor:x");
    expect([body, await t.live()]).toEqual([{ cancelled: 1 }, ["b"]]);
  });
});

test("a body with the key __proto__ is refused on every route that takes one, however deep it lies", async () => {
  await using t = setup({ compat: true });
  await t.app.request("/start", { method: "POST" }, t.env);
  const batch = { id: "a", open: true, num_samples: 2, goal: { groups: 1 } };
  expect((await t.send("POST", "/v1/batches", batch)).status).toBe(201);
  expect((await t.send("POST", "/v1/rollouts", { id: "a", ...ECHO })).status).toBe(201);
  const taking = ROUTES.filter(({ body }) => body).map(({ path }) => path);
  const bodies = [
    '{"__proto__":{"labels":{}}}',
    '{"instance":{"data_source":"echo","__proto__":{"reward":1}}}',
    '{"instance":{"data_source":"echo","deep":[[{"a":{"\\u005f_proto__":1}}]]}}',
  ];
  for (const path of [...taking, "/process", "/run"]) {
    for (const text of bodies) {
      const { status, body } = await t.send("POST", path, text);
      const told = body.error?.message ?? body.detail;
      expect([path, told]).toEqual([path, expect.stringContaining("has a key __proto__")]);
      expect([path, [400, 422].includes(status)]).toEqual([path, true]);
    }
  }
});

test("an id, a kind or a state that every object has is unknown like any other", async () => {
  await using t = await waiting();
  for (const name of ["constructor", "__proto__", "toString", "hasOwnProperty"]) {
    for (const { route, method, path } of ROUTES.filter(({ path }) => /\/a(\/|$)/.test(path))) {
      if (route === "POST /v1/batches/{id}/instances") continue;
      const { status } = await t.send(method, path.replace(/\/a(?=\/|$)/, `/${name}`), undefined);
      expect([route, name, status]).toEqual([route, name, 404]);
    }
    const listed = await t.send("GET", `/v1/rollouts?kind=${name}`);
    expect(listed.body.rollouts).toEqual([]);
    expect((await t.send("GET", `/v1/rollouts?state=${name}`)).status).toBe(400);
    for (const field of ["task_kind", "tokens", "image"]) {
      const { status } = await t.send("POST", "/v1/rollouts", { ...ECHO, [field]: name });
      expect([field, name, [201, 400, 422].includes(status)]).toEqual([field, name, true]);
    }
    const row = { instance: { data_source: name } };
    expect((await t.send("POST", "/v1/rollouts", row)).status).toBe(400);
  }
});
