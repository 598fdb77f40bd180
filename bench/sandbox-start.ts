import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { removeTree } from "../src/lib/remove-tree.ts";
import { attachSandbox } from "../src/sandbox/attach.ts";
import { createDriver } from "../src/sandbox/driver.ts";
import { endSandbox } from "../src/sandbox/end.ts";
import type { SandboxHandle } from "../src/sandbox/sandbox.ts";
import { LIMITS, required } from "../test/sandbox/setup.ts";
import { percentile, print, round } from "./line.ts";

const STARTS = 64;
const AT_ONCE = [1, 8, 32];
const FLOOR = "apptainer exec IMAGE true";

/** From the request for a sandbox, from an unpacked image, to the end of its first command. */
export async function sandboxStart(): Promise<void> {
  const dataDir = await mkdtemp(join(tmpdir(), "rolloutd-bench-"));
  const options = {
    dataDir,
    apptainer: required("ROLLOUTD_APPTAINER"),
    bwrap: required("ROLLOUTD_BWRAP"),
    minIsolation: "A",
    startAttempts: 1,
  } as const;
  try {
    for (const atOnce of AT_ONCE) {
      const floor = await measure(atOnce, floorStart);
      for (const name of ["apptainer", "bubblewrap"] as const) {
        const driver = createDriver(name, options);
        const handles: SandboxHandle[] = [];
        const times = await measure(atOnce, async (index) => {
          const id = `bench.${index}`;
          const image = required("ROLLOUTD_IMAGE");
          const spec = { id, image, writable: "tmpfs", limits: LIMITS } as const;
          const handle = await driver.start(spec, new AbortController().signal);
          handles.push(handle);
          const sandbox = await attachSandbox(handle);
          await sandbox.exec(["true"], { timeoutMs: 60_000, maxOutputBytes: 100 });
          await sandbox.detach();
        });
        await Promise.all(handles.map((handle) => endSandbox(handle, { graceMs: 0 })));
        report(name, atOnce, times, floor);
      }
    }
  } finally {
    await removeTree(dataDir);
  }
}

async function floorStart(): Promise<void> {
  const argv = [required("ROLLOUTD_APPTAINER"), "-q", "exec", "--userns"];
  const env = { PATH: "/usr/bin:/bin:/usr/sbin:/sbin", HOME: tmpdir() };
  const stdio: ["ignore", "ignore", "ignore"] = ["ignore", "ignore", "ignore"];
  await Bun.spawn([...argv, required("ROLLOUTD_IMAGE"), "true"], { env, stdio }).exited;
}

type Times = { eachMs: number[]; perSecond: number };

async function measure(atOnce: number, start: (index: number) => Promise<void>): Promise<Times> {
  const eachMs: number[] = [];
  let next = 0;
  const startMs = performance.now();
  const lane = async () => {
    while (next < STARTS) {
      const beginMs = performance.now();
      await start(next++);
      eachMs.push(performance.now() - beginMs);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  return { eachMs, perSecond: (1000 * STARTS) / (performance.now() - startMs) };
}

function report(
  name: "apptainer" | "bubblewrap",
  atOnce: number,
  { eachMs, perSecond }: Times,
  floor: Times,
): void {
  const p50 = percentile(eachMs, 0.5);
  const floorMs = percentile(floor.eachMs, 0.5);
  const fast = { target: "p50 at most 25 ms", met: p50 <= 25 };
  const many = { target: "8 times the floor's starts/s", met: perSecond >= 8 * floor.perSecond };
  const near = { target: "p50 at most 1.15 of the floor", met: p50 <= 1.15 * floorMs };
  print({
    bench: "sandbox-start",
    case: `${name}, ${atOnce} at once, ${perSecond.toFixed(0)}/s`,
    n: eachMs.length,
    p50,
    p99: percentile(eachMs, 0.99),
    unit: "ms",
    against: `${FLOOR}: ${floorMs} ms, ${floor.perSecond.toFixed(0)}/s`,
    ratio: round(p50 / floorMs),
    ...(name === "apptainer" ? near : atOnce === 1 ? fast : many),
  });
}
