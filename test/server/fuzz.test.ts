import { expect, test } from "bun:test";
import { bugOf, oddRequests } from "../support/odd-requests.ts";
import { exampleTrajectory } from "../support/trajectories.ts";
import { setup } from "./setup.ts";

const REQUESTS = Number(process.env.ROLLOUTD_TEST_FUZZ ?? 3000);
const SEED = Number(process.env.ROLLOUTD_TEST_SEED ?? Date.now() % 2 ** 31);

test(`${REQUESTS} odd requests on every route are answered or refused, never with a bug`, async () => {
  await using t = setup({ compat: true });
  const record = JSON.stringify(exampleTrajectory());
  for (const thread of t.threads) {
    thread.onStart = (start) =>
      thread.finish(start, start.stage === "run" ? { trajectory: record } : {});
  }
  const next = oddRequests(SEED);
  const bad: unknown[] = [];
  for (let i = 0; i < REQUESTS && bad.length < 3; i++) {
    const { path, ...init } = next();
    // A stream without an end.
    if (path.startsWith("/v1/events")) continue;
    const response = await t.app.request(path, init, t.env);
    await response.arrayBuffer();
    const status = bugOf(response);
    if (status !== null) bad.push({ seed: SEED, path, ...init, status });
  }
  expect(bad).toEqual([]);
  expect((await t.send("GET", "/healthz")).status).toBe(200);
}, 3_600_000);

test("the odd requests come to each route that there is, the compatible ones included", async () => {
  await using t = setup({ compat: true });
  const real = t.app.routes
    .filter(({ method }) => method !== "ALL")
    .map(({ method, path }) => `${method} ${path.replace(/:(\w+)/g, "{$1}")}`);
  const next = oddRequests(SEED);
  const drawn = new Set(Array.from({ length: 5000 }, () => next().route));
  expect([...new Set(real)].filter((route) => !drawn.has(route))).toEqual([]);
});
