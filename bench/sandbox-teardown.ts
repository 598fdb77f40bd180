import { attachSandbox } from "../src/sandbox/attach.ts";
import { endSandbox } from "../src/sandbox/end.ts";
import type { DriverName } from "../src/sandbox/sandbox.ts";
import { HANGING_FUSE, STOPPED } from "../test/sandbox/hostile.ts";
import { DAEMONISE, EXEC } from "../test/sandbox/setup.ts";
import { percentile, print, round } from "./line.ts";
import { lanes, NO_ABORT, type SandboxBundle, sandboxBundle } from "./sandbox-bundle.ts";

const ENDS = 40;
const P50_MS = 50;
const P99_MS = 2000;
/** For the leftovers to be there. */
const SETTLE_MS = 200;

/** setsid, double fork, what ignores TERM, what has stopped, and many of them. */
const ZOO = [DAEMONISE, STOPPED, ["sh", "-c", "trap '' TERM HUP INT; sleep 1000 & sleep 1000"]];

/** From the end of the job to the proof that no process, mount, socket or folder is left. */
export async function sandboxTeardown(): Promise<void> {
  await using bundle = await sandboxBundle();
  const floorMs = percentile(await floor(), 0.5);
  for (const driver of ["apptainer", "bubblewrap"] as const) {
    await measure(bundle, driver, "nothing left running", [], floorMs);
    await measure(bundle, driver, "hostile leftovers", ZOO, floorMs);
  }
  if (process.getuid?.() === 0) {
    await measure(bundle, "host", "a hanging FUSE", [HANGING_FUSE], floorMs);
  }
}

/** A process of no sandbox, from its SIGKILL until its parent knows of its end: nothing else is asked for. */
async function floor(): Promise<number[]> {
  const times: number[] = [];
  await lanes(ENDS, 4, async () => {
    const child = Bun.spawn(["sleep", "1000"], { stdio: ["ignore", "ignore", "ignore"] });
    await Bun.sleep(SETTLE_MS);
    const startMs = performance.now();
    child.kill("SIGKILL");
    await child.exited;
    times.push(performance.now() - startMs);
  });
  return times;
}

async function measure(
  bundle: SandboxBundle,
  name: DriverName,
  what: string,
  commands: string[][],
  floorMs: number,
): Promise<void> {
  const driver = bundle.driver(name);
  const times: number[] = [];
  await lanes(ENDS, 4, async () => {
    const handle = await driver.start(bundle.spec(), NO_ABORT);
    const sandbox = await attachSandbox(handle);
    for (const argv of commands)
      sandbox.exec(argv, { ...EXEC, timeoutMs: 600_000 }).catch(() => {});
    if (commands.length > 0) await Bun.sleep(SETTLE_MS);
    const startMs = performance.now();
    const { clean } = await endSandbox(handle);
    if (!clean) throw new Error(`a sandbox of ${name} left something behind`);
    times.push(performance.now() - startMs);
  });
  const p50 = percentile(times, 0.5);
  const p99 = percentile(times, 0.99);
  print({
    bench: "sandbox-teardown",
    case: `${name}, ${what}, 4 at once`,
    ...{ n: times.length, p50, p99, unit: "ms" },
    against: `kill -9 of a bare process: ${floorMs} ms`,
    ratio: round(p50 / floorMs),
    target: `p50 under ${P50_MS} ms, p99 under ${P99_MS} ms`,
    met: p50 < P50_MS && p99 < P99_MS,
  });
}
