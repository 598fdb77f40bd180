import { descendantsOf, proportionalBytes } from "../src/lib/proc.ts";
import { attachSandbox } from "../src/sandbox/attach.ts";
import { endSandbox } from "../src/sandbox/end.ts";
import type { SandboxHandle } from "../src/sandbox/sandbox.ts";
import { EXEC } from "../test/sandbox/setup.ts";
import { percentile, print, round } from "./line.ts";
import { lanes, NO_ABORT, type SandboxBundle, sandboxBundle } from "./sandbox-bundle.ts";

const SANDBOXES = 64;
const MB = 1e6;

/** How much memory an idle sandbox with an open shell takes; floor: a bash on the host. */
export async function sandboxDensity(): Promise<void> {
  await using bundle = await sandboxBundle();
  const bash = Bun.spawn(["bash"], { stdio: ["pipe", "ignore", "ignore"] });
  await Bun.sleep(200);
  const floor = round((proportionalBytes(bash.pid)?.all ?? 0) / MB);
  bash.kill();
  await measure(bundle, "apptainer", floor);
  await measure(bundle, "bubblewrap", floor);
}

async function measure(
  bundle: SandboxBundle,
  name: "apptainer" | "bubblewrap",
  floor: number,
): Promise<void> {
  const driver = bundle.driver(name);
  const handles: SandboxHandle[] = [];
  const before = process.memoryUsage.rss();
  await lanes(SANDBOXES, 8, async () => {
    const handle = await driver.start(bundle.spec(), NO_ABORT);
    handles.push(handle);
    const shell = await (await attachSandbox(handle)).shell();
    await shell.run("true", EXEC);
  });
  const service = (process.memoryUsage.rss() - before) / SANDBOXES;
  const each = handles.map(({ starterPid }) => {
    const pids = [starterPid, ...descendantsOf(starterPid)];
    return pids.reduce((sum, pid) => sum + (proportionalBytes(pid)?.all ?? 0), 0) / MB;
  });
  await Promise.all(handles.map((handle) => endSandbox(handle)));
  const p50 = percentile(each, 0.5);
  print({
    bench: "sandbox-density",
    case: `${name}, ${SANDBOXES} idle ones with a shell; the service holds ${round(service / MB)} MB for each`,
    ...{ n: each.length, p50, p99: percentile(each, 0.99), unit: "MB" },
    against: `bash on the host: ${floor} MB`,
    ratio: round(p50 / floor),
  });
}
