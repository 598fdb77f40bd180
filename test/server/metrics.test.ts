import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { waitFor } from "../support/wait-for.ts";
import { ECHO, setup } from "./setup.ts";

async function metrics(t: ReturnType<typeof setup>): Promise<Map<string, number>> {
  const text = await (await t.app.request("/metrics", {}, t.env)).text();
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const at = line.lastIndexOf(" ");
      return [line.slice(0, at), Number(line.slice(at + 1))];
    }),
  );
}

test("metrics count what ended and why, and say how the service stands", async () => {
  await using t = setup();
  await t.send("POST", "/v1/rollouts?wait_ms=20000", ECHO);
  const after = await metrics(t);
  expect(after.get('rolloutd_finished_total{state="succeeded"}')).toBe(1);
  expect(after.get('rolloutd_slots_free{stage="run"}')).toBe(8);
  expect(after.get("process_resident_memory_bytes")).toBeGreaterThan(1e6);
  expect([...after.values()].every(Number.isFinite)).toBe(true);
});

test("a failed attempt is counted by its class, whether another one follows or not", async () => {
  await using t = setup({ held: true });
  await t.send("POST", "/v1/rollouts", { ...ECHO, id: "a", num_attempts: 2 });
  const error = {
    code: "sandbox_died",
    message: "x",
    boundary: "sandbox",
    retryable: true,
  } as const;
  for (let attempt = 1; attempt <= 2; attempt++) {
    const [thread, start] = await waitFor(() => {
      for (const thread of t.threads) {
        const start = thread.starts().find((candidate) => candidate.attempt === attempt);
        if (start) return [thread, start] as const;
      }
      return null;
    }, `attempt ${attempt}`);
    thread.finish(start, { error });
    t.clock.aheadMs += 60_000;
  }
  await t.send("GET", "/v1/rollouts/a?wait_ms=20000");
  const labels = (retried: boolean) =>
    `rolloutd_failures_total{code="sandbox_died",boundary="sandbox",stage="init",retried="${retried}"}`;
  const after = await metrics(t);
  expect([after.get(labels(true)), after.get(labels(false))]).toEqual([1, 1]);
  expect(after.get("rolloutd_retries_total")).toBe(1);
});

test("groups and batches are counted while they are under way, and by how they ended", async () => {
  await using t = setup({ held: true });
  const { instance } = ECHO;
  await t.send("POST", "/v1/groups", { id: "g", num_samples: 2, instance });
  const instances = [instance];
  const batch = { id: "b", num_samples: 2, goal: { groups: 1 }, instances, open: true };
  await t.send("POST", "/v1/batches", batch);
  const before = await metrics(t);
  expect(before.get('rolloutd_groups{kind="group",state="running"}')).toBe(2);
  expect(before.get('rolloutd_groups{kind="batch",state="running"}')).toBe(1);
  await t.send("DELETE", "/v1/batches/b");
  const after = await metrics(t);
  expect(after.get('rolloutd_groups{kind="group",state="running"}')).toBe(1);
  expect(after.get('rolloutd_groups{kind="batch",state="running"}')).toBeUndefined();
  const ended = (labels: string) => after.get(`rolloutd_groups_finished_total{${labels}}`);
  expect(ended('kind="batch",state="cancelled"')).toBe(1);
  expect(ended('kind="group",state="cancelled",informative="false"')).toBe(1);
});

test("the dashboard shows every metric, and no other", async () => {
  await using t = setup();
  const text = await (await t.app.request("/metrics", {}, t.env)).text();
  const served = [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name as string);
  const file = join(import.meta.dir, "../../scripts/grafana-dashboard.json");
  const expressions: string[] = [];
  JSON.parse(readFileSync(file, "utf8"), (key, value) => {
    if (key === "expr" || key === "query" || key === "definition") expressions.push(String(value));
    return value;
  });
  const shown = expressions.flatMap((expression) => expression.match(/\b(rolloutd|process)_\w+/g));
  const names = shown.flatMap((name) => name?.replace(/_(bucket|sum|count)$/, "") ?? []);
  expect([...new Set(names)].toSorted()).toEqual(served.toSorted());
});
