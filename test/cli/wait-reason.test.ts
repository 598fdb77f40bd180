import { expect, test } from "bun:test";
import type { ApiClient } from "../../src/cli/api-client.ts";
import { WaitReason } from "../../src/cli/wait-reason.ts";

type Backend = { id: string; state: string; why: string | null };

/** What is said while a service has `backends`, one list for each look, and so much waits for RUN or works there. */
async function said(
  backends: Backend[][],
  run = { pending: 2, active: 0, slots: 4 },
  paused: string | null = null,
) {
  const lines: string[] = [];
  let looks = 0;
  const client = { backends: async () => ({ backends: backends[looks++] ?? [] }) };
  const reason = new WaitReason(client as unknown as ApiClient, (line) => lines.push(line.trim()));
  for (const _ of backends)
    await reason.look({ stages: { run }, weights: { version: null, paused } });
  return lines;
}

const ejected = { id: "e", state: "ejected", why: "it refused" };

test("rollouts that wait for an inference server say so, each reason once", async () => {
  expect(await said([[], [], [ejected], [ejected], [{ ...ejected, state: "healthy" }]])).toEqual([
    "rollouts wait for an inference server: add one with `rolloutd backends add URL`",
    "rollouts wait for an inference server: e is ejected (it refused)",
  ]);
});

test("nothing is said while something runs, or nothing waits", async () => {
  expect(await said([[]], { pending: 2, active: 1, slots: 4 })).toEqual([]);
  expect(await said([[]], { pending: 0, active: 0, slots: 4 })).toEqual([]);
});

test("a trainer that forgets its pause is told of it, also while rollouts run", async () => {
  const run = { pending: 0, active: 4, slots: 4 };
  expect(await said([[], []], run, "drain")).toEqual([
    "calls of the model wait for new weights: whoever paused them has to announce some, or POST /v1/weights/resume",
  ]);
});
