import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { RolloutView } from "../../src/protocol/view.ts";
import { type Service, serve } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const STALL_MS = 1500;
const KIND = join(import.meta.dir, "../support/broken-kind.ts");
const FLAGS = ["--tasks", KIND, "--run-threads", "2"];
/** Work beside it, which shares its threads, and of which nothing may fail. */
const ECHOES = Array.from({ length: 10 }, (_, index) => ({
  ...{ id: `echo-${index}`, num_attempts: 1 },
  instance: { data_source: "echo", run_ms: 100 * index },
}));
const IDS = ECHOES.map(({ id }) => id);

async function submit(service: Service, rollouts: object[]): Promise<void> {
  const init = {
    unix: service.socket,
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ rollouts }),
  };
  const response = await fetch("http://localhost/v1/rollouts", init);
  expect([response.status, response.ok || (await response.text())]).toEqual([201, true]);
}

/** The end of each of `ids`: state, error code, attempts that were made. */
async function ends(service: Service, ids: string[]) {
  const views = ids.map(async (id) => {
    const url = `http://localhost/v1/rollouts/${id}?wait_ms=30000`;
    const view = (await (await fetch(url, { unix: service.socket })).json()) as RolloutView;
    return [id, view.state, view.error?.code ?? null, view.attempt];
  });
  return await Promise.all(views);
}

function setup() {
  const dir = tempDir();
  return {
    data: dir.file("data"),
    broken: (id: string, how: string, times: number) => ({
      ...{ id, num_attempts: 2 },
      instance: { data_source: "broken", how, times, marker: dir.file(id) },
    }),
    /** How often it was run. */
    runs: (id: string) => readFileSync(dir.file(id), "utf8").split("\n").length - 1,
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

test("P9: a thread that a job breaks is replaced, and the job fails after its attempts; a stopped service is not broken", async () => {
  using t = setup();
  const flags = [...FLAGS, "--worker-stall-ms", String(STALL_MS)];
  await using service = await serve(t.data, flags);
  await submit(service, [t.broken("spin", "spin", 99), ...ECHOES]);
  const [spin, ...echoes] = await ends(service, ["spin", ...IDS]);
  expect(spin?.slice(0, 3)).toEqual(["spin", "failed", "worker_unresponsive"]);
  // With others beside it so often as a job survives that and once more, and then both of its attempts alone.
  expect(t.runs("spin")).toBeWithin(2, 6);
  expect(echoes.filter(([, state]) => state !== "succeeded")).toEqual([]);
  await submit(service, [t.broken("throw", "throw", 99)]);
  const thrown = await ends(service, ["throw"]);
  expect([thrown, t.runs("throw")]).toEqual([[["throw", "failed", "worker_crashed", 2]], 2]);
  await submit(service, [t.broken("once", "throw", 1)]);
  expect(await ends(service, ["once"])).toEqual([["once", "succeeded", null, 2]]);
  await submit(service, [{ id: "stopped", instance: { data_source: "echo", run_ms: 500 } }]);
  service.signal("SIGSTOP");
  const goesOnMs = performance.now() + 2 * STALL_MS;
  await waitFor(() => performance.now() > goesOnMs, "the time that it is stopped");
  service.signal("SIGCONT");
  expect(await ends(service, ["stopped"])).toEqual([["stopped", "succeeded", null, 1]]);
}, 60_000);

/** Fifty that stay in RUN for a while; none of them may fail even once. */
const INNOCENTS = Array.from({ length: 50 }, (_, index) => ({
  ...{ id: `innocent-${index}`, num_attempts: 1 },
  instance: { data_source: "echo", run_ms: 200 },
}));
const TOGETHER = ["--tasks", KIND, "--run-threads", "1", "--max-crashes", "1"];
for (const stage of ["init", "run"]) TOGETHER.push(`--${stage}-slots`, "64");

test("P9: of fifty-one jobs in a thread the one that breaks it fails, and the others are found innocent", async () => {
  using t = setup();
  await using service = await serve(t.data, TOGETHER);
  const poison = t.broken("poison", "throw", 99);
  await submit(service, [...INNOCENTS.slice(0, 25), poison, ...INNOCENTS.slice(25)]);
  const ids = INNOCENTS.map(({ id }) => id);
  const [guilty, ...others] = await ends(service, ["poison", ...ids]);
  expect(guilty?.slice(0, 3)).toEqual(["poison", "failed", "worker_crashed"]);
  // Twice with others at most (`--max-crashes`), then both of its attempts alone.
  expect(t.runs("poison")).toBeWithin(2, 5);
  expect(others.filter(([, state]) => state !== "succeeded")).toEqual([]);
}, 60_000);

test("P6: of fifty-one jobs the one that brings the whole service to its end is failed, and the others come to theirs", async () => {
  using t = setup();
  const poison = t.broken("poison", "kill", 99);
  const ids = INNOCENTS.map(({ id }) => id);
  let lives = 0;
  for (let isOver = false; !isOver; lives++) {
    await using service = await serve(t.data, TOGETHER);
    if (lives === 0)
      await submit(service, [...INNOCENTS.slice(0, 25), poison, ...INNOCENTS.slice(25)]);
    // Each time also one that comes later.
    await submit(service, [{ ...INNOCENTS[0], id: `after-${lives}` }]).catch(() => {});
    const all = ends(service, ["poison", ...ids]).catch(() => null);
    const ended = await Promise.race([all, service.exited.then(() => null)]);
    if (ended === null) continue;
    isOver = true;
    const [guilty, ...others] = ended;
    expect(guilty?.slice(0, 3)).toEqual(["poison", "failed", "crash_limit"]);
    expect(others.filter(([, state]) => state !== "succeeded")).toEqual([]);
  }
  // It took as many crashes as `Suspects` promises, and one more start.
  expect(lives).toBe(4);
  expect(t.runs("poison")).toBe(3);
}, 60_000);
