import { readdirSync } from "node:fs";
import { join } from "node:path";
import { descendantsOf } from "../src/lib/proc.ts";
import { attachSandbox } from "../src/sandbox/attach.ts";
import { endSandbox } from "../src/sandbox/end.ts";
import { EXEC } from "../test/sandbox/setup.ts";
import { percentile, print } from "./line.ts";
import { lanes, NO_ABORT, sandboxBundle } from "./sandbox-bundle.ts";

const SANDBOXES = 500;
/** What is loaded and cached once is there after as many. */
const WARM_UP = 100;
const AT_ONCE = 8;
const MAX_GROWTH_BYTES = 30_000_000;

/** 500 sandboxes made, used and ended: does anything of them stay? */
export async function sandboxSoak(): Promise<void> {
  await using bundle = await sandboxBundle();
  const driver = bundle.driver("bubblewrap");
  const times: number[] = [];
  const use = async () => {
    const startMs = performance.now();
    const handle = await driver.start(bundle.spec(), NO_ABORT);
    const sandbox = await attachSandbox(handle);
    const shell = await sandbox.shell();
    await shell.run("seq 10000; head -c 100000 /dev/zero >file", EXEC);
    const { removed } = await endSandbox(handle);
    await removed;
    times.push(performance.now() - startMs);
  };
  await lanes(WARM_UP, AT_ONCE, use);
  const before = await held(bundle.dataDir);
  await lanes(SANDBOXES - WARM_UP, AT_ONCE, use);
  const after = await held(bundle.dataDir);
  const grown = Math.round((after.rss - before.rss) / 1e6);
  const same = (["fds", "processes", "entries"] as const).every((it) => after[it] <= before[it]);
  print({
    bench: "sandbox-soak",
    case: `${SANDBOXES} of bubblewrap, ${AT_ONCE} at once: ${grown} MB more after the last ${SANDBOXES - WARM_UP}, ${after.fds} descriptors, ${after.processes} processes, ${after.entries} entries on disk`,
    n: times.length,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    unit: "ms",
    target: "as many descriptors, processes and entries as before, at most 30 MB more",
    met: same && after.rss - before.rss <= MAX_GROWTH_BYTES,
  });
}

async function held(dataDir: string) {
  // Streams of ended sandboxes close with a turn of the event loop of their own.
  await Bun.sleep(200);
  Bun.gc(true);
  return {
    rss: process.memoryUsage.rss(),
    fds: readdirSync("/proc/self/fd").length,
    processes: descendantsOf(process.pid).length,
    entries: readdirSync(join(dataDir, "sandboxes"), { recursive: true }).length,
  };
}
