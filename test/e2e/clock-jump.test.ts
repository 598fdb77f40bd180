import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { RolloutView } from "../../src/protocol/view.ts";
import { type Service, serve } from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const ROOT = resolve(import.meta.dir, "../..");
const HOUR_S = 3600;
const FOREVER_MS = 600_000;
const FLAGS = ["--drain-ms", "1"];

/** A wall clock that the test sets, for the binary as it is: a library that is loaded before libc. */
function playedClock(dir: { file(name: string): string }) {
  const [library, file] = [dir.file("clock.so"), dir.file("ahead")];
  const compiler = Bun.spawnSync([join(ROOT, "scripts/setup.d/compiler")])
    .stdout.toString()
    .trim();
  const flags = ["-shared", "-fPIC", "-nostdlib", `-DJUMP_FILE="${file}"`, "-o", library];
  const source = join(ROOT, "test/support/clock-jump.c");
  const { exitCode, stderr } = Bun.spawnSync([...compiler.split(" "), ...flags, source]);
  expect([exitCode, stderr.toString()]).toEqual([0, ""]);
  const set = (aheadS: number) => {
    const bytes = Buffer.alloc(8);
    bytes.writeBigInt64LE(BigInt(aheadS));
    writeFileSync(file, bytes);
  };
  set(0);
  return { env: { LD_PRELOAD: library }, set };
}

const echo = (id: string, runMs: number, totalMs: number, leaseMs?: number) => ({
  ...{ id, instance: { data_source: "echo", run_ms: runMs }, limits: { total_ms: totalMs } },
  ...(leaseMs && { lease_ms: leaseMs }),
});

async function submit(service: Service, rollouts: object[]): Promise<void> {
  const init = {
    unix: service.socket,
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ rollouts }),
  };
  expect((await fetch("http://localhost/v1/rollouts", init)).status).toBe(201);
}

async function get(service: Service, path: string): Promise<RolloutView> {
  const response = await fetch(`http://localhost/v1/rollouts/${path}`, { unix: service.socket });
  return (await response.json()) as RolloutView;
}

async function end(service: Service, id: string) {
  const { state, error, attempt } = await get(service, `${id}?wait_ms=20000`);
  return [state, error?.code ?? null, attempt];
}

test("P2, P9: a clock that jumps ends no job early and keeps none beyond its limit, running or restarted", async () => {
  using dir = tempDir();
  const clock = playedClock(dir);
  const start = () => serve(dir.file("data"), FLAGS, { env: clock.env });
  {
    await using service = await start();
    await submit(service, [echo("far", 1500, 20_000, 10_000), echo("short", FOREVER_MS, 2000)]);
    for (const aheadS of [HOUR_S, -HOUR_S, 0]) {
      clock.set(aheadS);
      await submit(service, [echo(`at${aheadS}`, 300, 20_000)]);
      expect(await end(service, `at${aheadS}`)).toEqual(["succeeded", null, 1]);
    }
    expect(await end(service, "far")).toEqual(["succeeded", null, 1]);
    expect(await end(service, "short")).toEqual(["failed", "deadline_exceeded", 1]);
    await submit(service, [echo("lasting", 1000, 86_400_000, 10_000)]);
    await submit(service, [echo("bounded", FOREVER_MS, 3000)]);
    await waitFor(async () => (await get(service, "bounded")).stage === "run", "RUN of it");
    service.signal("SIGKILL");
    await service.exited;
  }
  // Set back while nobody ran: a stored limit lies hours ahead.
  clock.set(-2 * HOUR_S);
  {
    await using service = await start();
    expect(await end(service, "bounded")).toEqual(["failed", "deadline_exceeded", 2]);
    expect(await end(service, "lasting")).toEqual(["succeeded", null, 2]);
    await submit(service, [echo("back", 0, 20_000), echo("ahead", FOREVER_MS, 86_400_000, 20_000)]);
    expect(await end(service, "back")).toEqual(["succeeded", null, 1]);
    const { created_at } = await get(service, "back");
    expect(Date.now() - Date.parse(created_at)).toBeGreaterThan(HOUR_S * 1000);
    await waitFor(async () => (await get(service, "ahead")).stage === "run", "RUN of it");
    service.signal("SIGKILL");
    await service.exited;
  }
  clock.set(2 * HOUR_S);
  await using service = await start();
  // Its lease would have been over for hours, had nobody seen that the time is not time that passed.
  await waitFor(async () => (await get(service, "ahead")).attempt === 2, "the second attempt");
  expect((await get(service, "ahead")).state).toBe("active");
  const url = "http://localhost/v1/rollouts?order=finished&limit=100";
  const { rollouts } = (await (await fetch(url, { unix: service.socket })).json()) as {
    rollouts: RolloutView[];
  };
  expect(rollouts.length).toBe(8);
}, 60_000);
