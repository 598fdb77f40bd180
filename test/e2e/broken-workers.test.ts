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
/** Work beside it, which shares its threads. */
const ECHOES = Array.from({ length: 10 }, (_, index) => ({
  ...{ id: `echo-${index}`, num_attempts: 5 },
  instance: { data_source: "echo", run_ms: 100 * index },
}));
const IDS = ECHOES.map(({ id }) => id);

async function submit(service: Service, rollouts: object[]): Promise<void> {
  const init = { unix: service.socket, method: "POST", body: JSON.stringify({ rollouts }) };
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
  expect([spin, t.runs("spin")]).toEqual([["spin", "failed", "worker_unresponsive", 2], 2]);
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

test("P6: a job that brings the whole service to its end is failed, not looped, and costs no other job its end", async () => {
  using t = setup();
  const flags = [...FLAGS, "--max-crashes", "2"];
  for (let life = 1; life <= 3; life++) {
    await using service = await serve(t.data, flags);
    if (life === 1) await submit(service, [t.broken("poison", "kill", 99)]);
    await submit(service, [{ id: `after-${life}`, instance: { data_source: "echo" } }]).catch(
      () => {},
    );
    expect([life, await service.exited]).toEqual([life, 137]);
  }
  await using service = await serve(t.data, flags);
  expect(await ends(service, ["poison"])).toEqual([["poison", "failed", "crash_limit", 3]]);
  expect(t.runs("poison")).toBe(3);
  await submit(service, ECHOES);
  const echoes = await ends(service, IDS);
  expect(echoes.filter(([, state]) => state !== "succeeded")).toEqual([]);
}, 60_000);
