import { expect, test } from "bun:test";
import { openApiDocument } from "../../src/server/openapi/document.ts";
import { OPERATIONS } from "../../src/server/openapi/operations.ts";
import { setup } from "./setup.ts";

test("the description names every route that there is, and no other", async () => {
  await using t = setup();
  const real = t.app.routes
    .filter(({ method }) => method !== "ALL")
    .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
  const described: string[] = OPERATIONS.map(({ route }) => route);
  expect([...new Set(real)].toSorted()).toEqual(described.toSorted());
});

test("every example is taken by its route", async () => {
  await using t = setup({ held: true });
  for (const { route, example } of OPERATIONS) {
    if (example === undefined) continue;
    const [method = "", path = ""] = route.split(" ");
    const { status } = await t.send(method, path, example);
    expect([route, status < 300]).toEqual([route, true]);
  }
});

test("it is OpenAPI 3.1 with a schema for each body, and is served", async () => {
  await using t = setup();
  const { body } = await t.send("GET", "/openapi.json");
  expect(body).toEqual(JSON.parse(JSON.stringify(openApiDocument("0.0.0-test"))));
  expect(body.openapi).toBe("3.1.0");
  const submit = body.paths["/v1/rollouts"].post.requestBody.content["application/json"];
  expect(submit.schema.anyOf[0].properties.limits.properties.run_ms.type).toBe("integer");
  const [after] = body.paths["/v1/rollouts"].get.parameters;
  expect(after).toMatchObject({ name: "after", in: "query", required: false });
});
