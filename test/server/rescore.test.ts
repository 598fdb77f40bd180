import { expect, test } from "bun:test";
import { echo } from "../../src/tasks/echo/echo.ts";
import { waitFor } from "../support/wait-for.ts";
import { replaced } from "../worker/setup.ts";
import { ECHO, setup } from "./setup.ts";

test("a rescore runs EVAL alone, on what RUN left, and leaves the rollout as it is", async () => {
  await using t = setup();
  await t.send("POST", "/v1/rollouts?wait_ms=20000", { id: "a", ...ECHO });
  for (const thread of t.threads) {
    thread.onStart = (start) =>
      thread.finish(start, { verdict: { reward: 0.5, rule: "new", reason: "." } });
  }
  const before = t.threads.flatMap((thread) => thread.starts()).length;
  const { status, body } = await t.send("POST", "/v1/rollouts/a/rescore?wait_ms=20000", {
    id: "b",
  });
  expect(status).toBe(201);
  expect(body).toMatchObject({
    id: "b",
    rescore_of: "a",
    stage: "eval",
    state: "succeeded",
    reward: 0.5,
    stop_reason: "done",
    created: true,
  });
  const starts = t.threads.flatMap((thread) => thread.starts());
  expect(starts.length).toBe(before + 1);
  const evaluated = starts.filter(({ jobId }) => jobId === "b");
  expect(evaluated.map(({ stage, handle, backend }) => [stage, handle, backend])).toEqual([
    ["eval", null, null],
  ]);
  expect(JSON.parse(evaluated[0]?.outcome ?? "null")).toMatchObject({ stop_reason: "done" });
  expect((await t.send("GET", "/v1/rollouts/a")).body).toMatchObject({
    reward: 1,
    rescore_of: null,
  });
});

test("the same id again is the same rescore, also of a rescore; every verdict is listed", async () => {
  await using t = setup();
  await t.send("POST", "/v1/rollouts?wait_ms=20000", { id: "a", ...ECHO });
  const rescore = (of: string, id: string) =>
    t.send("POST", `/v1/rollouts/${of}/rescore?wait_ms=20000`, { id });
  expect((await rescore("a", "b")).status).toBe(201);
  expect((await rescore("a", "b")).status).toBe(200);
  expect((await rescore("b", "c")).body.rescore_of).toBe("a");
  const { scores } = (await t.send("GET", "/v1/rollouts/b/scores")).body;
  expect(scores.map(({ id, reward }: { id: string; reward: number }) => [id, reward])).toEqual([
    ["a", 1],
    ["b", 1],
    ["c", 1],
  ]);
  const conflict = await t.send("POST", "/v1/rollouts/a/rescore", { id: "a" });
  expect([conflict.status, conflict.body.error.code]).toEqual([422, "id_conflict"]);
});

test("without a body it has an id of its own", async () => {
  await using t = setup();
  await t.send("POST", "/v1/rollouts?wait_ms=20000", { id: "a", ...ECHO });
  const { status, body } = await t.send("POST", "/v1/rollouts/a/rescore?wait_ms=20000");
  expect([status, body.rescore_of, body.reward]).toEqual([201, "a", 1]);
});

test("what was scored in the agent's sandbox can't be scored again", async () => {
  const plan = { agent: false, evaluation: "agent", image: "i" } as const;
  using _ = replaced(echo, "sandboxes", () => plan);
  await using t = setup();
  await t.send("POST", "/v1/rollouts?wait_ms=20000", { id: "a", ...ECHO });
  const { status, body } = await t.send("POST", "/v1/rollouts/a/rescore");
  expect([status, body.error.code]).toEqual([409, "not_rescorable"]);
});

test("what has no outcome, or is not there, can't be scored again", async () => {
  await using t = setup({ held: true });
  await t.send("POST", "/v1/rollouts", { id: "a", ...ECHO });
  const refusal = async (id: string) => {
    const { status, body } = await t.send("POST", `/v1/rollouts/${id}/rescore`);
    return [status, body.error.code];
  };
  expect(await refusal("a")).toEqual([409, "not_rescorable"]);
  expect(await refusal("nobody")).toEqual([404, "not_found"]);
});

test("a rescore shows the trajectory of the rollout that it scores again", async () => {
  await using t = setup();
  for (const thread of t.threads) {
    thread.onStart = (start) =>
      thread.finish(start, { trajectory: start.stage === "run" ? '{"turns":[]}' : null });
  }
  await t.send("POST", "/v1/rollouts?wait_ms=20000", { id: "a", ...ECHO });
  await t.send("POST", "/v1/rollouts/a/rescore?wait_ms=20000", { id: "b" });
  await waitFor(() => t.store.jobById("b")?.finished_ms, "the rescore");
  expect((await t.send("GET", "/v1/rollouts/b/trajectory")).body).toEqual({ turns: [] });
});
