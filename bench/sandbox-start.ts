import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { attachSandbox } from "../src/sandbox/attach.ts";
import { endSandbox } from "../src/sandbox/end.ts";
import { Images } from "../src/sandbox/images/images.ts";
import type { DriverName, SandboxHandle } from "../src/sandbox/sandbox.ts";
import { whyNoSifMount } from "../src/sandbox/sif-mount.ts";
import { WarmDriver } from "../src/worker/warm.ts";
import { required } from "../test/sandbox/setup.ts";
import { makeSif } from "../test/support/sif.ts";
import { percentile, print, round } from "./line.ts";
import { lanes, NO_ABORT, type SandboxBundle, sandboxBundle } from "./sandbox-bundle.ts";

const STARTS = 64;
/** As long a look at the fast driver as at the slow one. */
const BUBBLEWRAP_STARTS = 256;
const SIF_STARTS = 8;
const AT_ONCE = [1, 8, 32];
const FLOOR = "apptainer exec IMAGE true";

/** From the request for a sandbox to the end of its first command. */
export async function sandboxStart(): Promise<void> {
  await using bundle = await sandboxBundle();
  // First, because an image that was written a moment ago is hashed anew at each use; and all of it on the disk.
  const sif = join(bundle.dataDir, "image.sif");
  await makeSif(required("ROLLOUTD_APPTAINER"), required("ROLLOUTD_IMAGE"), sif);
  Bun.spawnSync(["sync"]);
  for (const atOnce of AT_ONCE) {
    const floor = await measure(STARTS, atOnce, () => floorStart(required("ROLLOUTD_IMAGE")));
    for (const name of ["apptainer", "bubblewrap"] as const) {
      await using started = new Started();
      const driver = bundle.driver(name);
      const starts = name === "bubblewrap" ? BUBBLEWRAP_STARTS : STARTS;
      const times = await measure(starts, atOnce, async () => {
        await started.firstCommand(await driver.start(bundle.spec(), NO_ABORT));
      });
      reportDirectory(name, atOnce, times, floor);
    }
    await warm(bundle, atOnce);
  }
  await fromSif(bundle, sif);
}

/** Sandboxes that are ended together, after the measurement. */
class Started {
  readonly #handles: SandboxHandle[] = [];

  async firstCommand(handle: SandboxHandle): Promise<void> {
    this.#handles.push(handle);
    const sandbox = await attachSandbox(handle);
    await sandbox.exec(["true"], { timeoutMs: 60_000, maxOutputBytes: 100 });
    await sandbox.detach();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.all(this.#handles.map((handle) => endSandbox(handle)));
  }
}

async function floorStart(image: string): Promise<void> {
  const argv = [required("ROLLOUTD_APPTAINER"), "-q", "exec", "--userns"];
  const path = "/usr/bin:/bin:/usr/sbin:/sbin";
  // Where squashfuse is, without which it would unpack a SIF at each start.
  const tools = dirname(required("ROLLOUTD_APPTAINER"));
  const env = { PATH: image.endsWith(".sif") ? `${path}:${tools}` : path, HOME: tmpdir() };
  const stdio: ["ignore", "ignore", "ignore"] = ["ignore", "ignore", "ignore"];
  await Bun.spawn([...argv, image, "true"], { env, stdio }).exited;
}

type Times = { eachMs: number[]; perSecond: number };

async function measure(
  starts: number,
  atOnce: number,
  start: (index: number) => Promise<void>,
): Promise<Times> {
  const eachMs: number[] = [];
  const startMs = performance.now();
  await lanes(starts, atOnce, async (index) => {
    const beginMs = performance.now();
    await start(index);
    eachMs.push(performance.now() - beginMs);
  });
  return { eachMs, perSecond: (1000 * starts) / (performance.now() - startMs) };
}

function reportDirectory(
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
    case: `${name}, from a directory, ${atOnce} at once, ${perSecond.toFixed(0)}/s`,
    n: eachMs.length,
    p50,
    p99: percentile(eachMs, 0.99),
    unit: "ms",
    against: `${FLOOR}: ${floorMs} ms, ${floor.perSecond.toFixed(0)}/s`,
    ratio: round(p50 / floorMs),
    ...(name === "apptainer" ? near : atOnce === 1 ? fast : many),
  });
}

/** What a job does with a sandbox that was kept ready: check it, take it over, first command. */
async function warm(bundle: SandboxBundle, atOnce: number): Promise<void> {
  const driver = bundle.driver("bubblewrap");
  const ready = new Map<number, WarmDriver>();
  await lanes(STARTS, 8, async (index) => {
    const spec = bundle.spec();
    const kept = { handle: await driver.start(spec, NO_ABORT), spec };
    ready.set(index, new WarmDriver(driver, kept, async () => {}));
  });
  await using started = new Started();
  const { eachMs } = await measure(STARTS, atOnce, async (index) => {
    const handle = await (ready.get(index) as WarmDriver).start(bundle.spec(), NO_ABORT);
    await started.firstCommand(handle);
  });
  const p50 = percentile(eachMs, 0.5);
  print({
    bench: "sandbox-start",
    case: `kept ready, ${atOnce} at once`,
    ...{ n: eachMs.length, p50, p99: percentile(eachMs, 0.99), unit: "ms" },
    ...(atOnce === 1 ? { target: "p50 at most 5 ms", met: p50 <= 5 } : {}),
  });
}

/** As a job starts from a SIF: from what the node has unpacked of it once, and from the SIF as it is mounted. */
async function fromSif(bundle: SandboxBundle, sif: string): Promise<void> {
  const apptainer = required("ROLLOUTD_APPTAINER");
  const floor = await measure(SIF_STARTS, 1, () => floorStart(sif));
  const cacheDir = join(bundle.dataDir, "images");
  const policy = { named: [], folders: null, registries: [] };
  const shared = { cacheDir, maxBytes: 1e12, apptainer, policy };
  const unpacked = new Images({ ...shared, mountAboveBytes: null });
  const mounted = new Images({ ...shared, mountAboveBytes: 0 });
  const cases: [how: string, name: DriverName, Images][] = [
    ["unpacked", "apptainer", unpacked],
    ["mounted", "apptainer", mounted],
    ["mounted", "bubblewrap", mounted],
  ];
  for (const [how, name, images] of cases) {
    if (how === "mounted" && whyNoSifMount(apptainer) !== null) continue;
    const driver = bundle.driver(name);
    await using started = new Started();
    const start = async () => {
      const { path, lock } = await images.acquire(sif, NO_ABORT);
      using _held = lock;
      await started.firstCommand(await driver.start(bundle.spec({ image: path }), NO_ABORT));
    };
    const first = await measure(1, 1, start);
    const { eachMs } = await measure(SIF_STARTS, 1, start);
    const p50 = percentile(eachMs, 0.5);
    const floorMs = percentile(floor.eachMs, 0.5);
    print({
      bench: "sandbox-start",
      case: `${name}, from a SIF, ${how}; the first ${round(percentile(first.eachMs, 0.5))} ms`,
      ...{ n: eachMs.length, p50, p99: percentile(eachMs, 0.99), unit: "ms" },
      against: `${FLOOR} of the SIF: ${floorMs} ms`,
      ratio: round(p50 / floorMs),
      target: "p50 at most the floor",
      met: p50 <= floorMs,
    });
  }
}
