import { expect, test } from "bun:test";
import { balanceSetup } from "./balance-setup.ts";

const ROLLOUTS = 90;
const TURNS = 4;
const AT_ONCE = 12;

test("P12: one bad backend of three fails no rollout, and costs few calls more than it takes to be found out", async () => {
  await using t = balanceSetup();
  const bad = await t.simulate("bad");
  t.registry.add(bad.backend);
  for (const id of ["b", "c"]) t.registry.add((await t.simulate(id)).backend);
  await bad.stop();
  let failed = 0;
  // It takes requests and never generates, however often it is probed.
  await using broken = Bun.serve({
    ...{ hostname: "127.0.0.1", port: bad.port },
    fetch(request) {
      if (!request.headers.get("x-request-id")?.startsWith("probe.")) failed++;
      return new Response("out of memory", { status: 500 });
    },
  });
  const backends = new Map<string, number>();
  const begin = async () => {
    const rollout = t.rollout();
    for (let turn = 0; turn < TURNS; turn++) {
      const { backendId = "none" } = await rollout.turn(`turn ${turn}`);
      backends.set(backendId, (backends.get(backendId) ?? 0) + 1);
    }
    rollout.end();
  };
  for (let begun = 0; begun < ROLLOUTS; begun += AT_ONCE) {
    await Promise.all(Array.from({ length: Math.min(AT_ONCE, ROLLOUTS - begun) }, begin));
  }
  const turns = [...backends.values()].reduce((sum, count) => sum + count, 0);
  expect([turns, backends.has("bad")]).toEqual([ROLLOUTS * TURNS, false]);
  expect(failed).toBeGreaterThan(0);
  // Those of the first rollouts, which are tried there once more before they move: 2 a third of them, and a few.
  expect(failed).toBeLessThanOrEqual(AT_ONCE);
  expect(failed / turns).toBeLessThan(0.2);
  await broken.stop(true);
});
