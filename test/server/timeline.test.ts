import { expect, test } from "bun:test";
import { errorBodyOf } from "../../src/errors.ts";
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

test("an attempt that failed keeps its calls and tools beside the one that took its place", async () => {
  await using t = setup({ held: true });
  const tools = [{ name: "execute_bash", status: "timeout", message: 3, duration_ms: 8 }];
  const turn = { backend_id: "b", started_ms: 1, engine_ms: 2, waited_ms: 0, tools };
  const error = errorBodyOf("sandbox_died", "gone");
  const record = JSON.stringify({ attempt: 2, turns: [{ ...turn, tools: [] }] });
  for (const thread of t.threads) {
    thread.onStart = (start) => {
      if (start.stage !== "run") thread.finish(start);
      else if (start.attempt === 2) thread.finish(start, { trajectory: record });
      else thread.finish(start, { error, trajectory: "{}", turns: JSON.stringify([turn]) });
    };
  }
  await t.send("POST", "/v1/rollouts?wait_ms=20000", { id: "a", ...ECHO });
  const { body } = await t.send("GET", "/v1/rollouts/a/timeline");
  const calls = body.spans.filter(
    ({ kind }: { kind: string }) => kind === "model" || kind === "tool",
  );
  expect(calls).toMatchObject([
    { kind: "model", attempt: 1, stage: "run", turn: 0, backend_id: "b" },
    { kind: "tool", attempt: 1, stage: "run", turn: 0, name: "execute_bash", status: "timeout" },
    { kind: "model", attempt: 2, stage: "run", turn: 0, backend_id: "b" },
  ]);
});
