import { expect, test } from "bun:test";
import { ECHO, setup } from "./setup.ts";

test("a finished rollout shows what it waited for and where it worked", async () => {
  await using t = setup();
  await t.send("POST", "/v1/rollouts?wait_ms=20000", { id: "a", ...ECHO });
  const { status, body } = await t.send("GET", "/v1/rollouts/a/timeline");
  const shown = body.spans.map(({ kind, stage }: { kind: string; stage: string }) => [kind, stage]);
  expect([status, shown]).toEqual([
    200,
    ["init", "run", "eval"].flatMap((stage) => [
      ["queue", stage],
      ["work", stage],
    ]),
  ]);
  expect((await t.send("GET", "/v1/rollouts/none/timeline")).status).toBe(404);
});
