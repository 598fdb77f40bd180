import { expect, test } from "bun:test";
import { OPERATIONS } from "../../src/server/openapi/operations.ts";
import { setup } from "./setup.ts";

const METHODS = ["GET", "POST", "DELETE", "PUT", "PATCH"];
const COMPAT = ["/start", "/stop", "/status", "/process", "/cancel", "/run", "/aggregate_metrics"];

/** A path of a route, with an id where it has one. */
const pathOf = (route: string) => route.split(" ")[1]?.replace(/\{\w+\}/g, "nobody") ?? "";

/** Also an id can be called what another route is. */
function matches(route: string, path: string): boolean {
  const pattern = route.split(" ")[1]?.replace(/\{\w+\}/g, "[^/]+");
  return new RegExp(`^${pattern}$`).test(path);
}

test("a method that a path does not take is a 405 that names those it does", async () => {
  await using t = setup();
  for (const { route } of OPERATIONS) {
    const path = pathOf(route);
    const taken = OPERATIONS.filter((one) => matches(one.route, path)).map(
      (one) => one.route.split(" ")[0] as string,
    );
    const refused = METHODS.filter((method) => !taken.includes(method));
    for (const method of refused) {
      const response = await t.app.request(path, { method }, t.env);
      const { error } = (await response.json()) as { error: { code: string; mend: string } };
      const allow = response.headers.get("allow")?.split(", ") ?? [];
      expect([method, path, response.status, error.code]).toEqual([
        ...[method, path, 405, "method_not_allowed"],
      ]);
      const expected = [...taken, ...(taken.includes("GET") ? ["HEAD"] : []), "OPTIONS"];
      expect([path, allow.toSorted()]).toEqual([path, [...new Set(expected)].toSorted()]);
      expect(error.mend).toContain(path);
    }
  }
});

test("so it is for the routes of other APIs, and a path that nobody has stays a 404", async () => {
  await using t = setup({ compat: true });
  for (const path of COMPAT) {
    const response = await t.app.request(path, { method: "PATCH" }, t.env);
    expect([path, response.status]).toEqual([path, 405]);
    expect(response.headers.get("allow")).toMatch(/GET|POST/);
  }
  expect((await t.send("PATCH", "/v1/nothing")).status).toBe(404);
  expect((await t.app.request("/v1/nothing", { method: "OPTIONS" }, t.env)).status).toBe(404);
});

test("OPTIONS says what a path takes, and HEAD what GET would, without a body", async () => {
  await using t = setup();
  const options = await t.app.request("/v1/rollouts", { method: "OPTIONS" }, t.env);
  expect([options.status, options.headers.get("allow")]).toEqual([
    ...[204, "DELETE, GET, POST, HEAD, OPTIONS"],
  ]);
  const head = await t.app.request("/v1/rollouts", { method: "HEAD" }, t.env);
  expect([head.status, head.headers.get("content-type"), await head.text()]).toEqual([
    ...[200, "application/json", ""],
  ]);
  expect((await t.app.request("/v1/rollouts/x", { method: "HEAD" }, t.env)).status).toBe(404);
  expect((await t.app.request("/v1/weights/pause", { method: "HEAD" }, t.env)).status).toBe(405);
});

test("a HEAD of the events opens no stream", async () => {
  await using t = setup();
  for (let count = 0; count < 5; count++) {
    const { status, headers } = await t.app.request("/v1/events", { method: "HEAD" }, t.env);
    expect([status, headers.get("content-type")]).toEqual([200, "text/event-stream"]);
  }
});
