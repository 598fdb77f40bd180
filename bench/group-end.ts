import { readFileSync } from "node:fs";
import { childrenOf, descendantsOf, killProcess, processStartTime } from "../src/lib/proc.ts";
import type { GroupView } from "../src/protocol/group-view.ts";
import type { TimelineView } from "../src/protocol/timeline.ts";
import { environment, sandboxFlags, serve, simulate, turn } from "../test/support/binary.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { percentile, print } from "./line.ts";

const ROLLOUTS = 64;
const TARGET_MS = 100;
const HOUR_MS = 3_600_000;

const COMMAND = "sleep 1000";

/** Half of the rollouts sit in a shell command and half in a call of the model, as seeds choose. */
const VARIANTS = [
  [turn("execute_bash", { command: COMMAND })],
  [{ content: "", delay_ms: HOUR_MS }],
];

const WORKING = {
  data_source: "codeforces",
  prompt: [{ role: "user", content: "bench" }],
  reward_model: { ground_truth: JSON.stringify({ inputs: ["1"], outputs: ["1"] }) },
};
/** For a slot of RUN, and for nothing else. */
const WAITING = { data_source: "echo", run_ms: HOUR_MS };

/** So long no further command has begun: all rollouts are where they are meant to be. */
const QUIET_MS = 2000;
const LOOK_MS = 100;
/** Units of the times in /proc. */
const TICK_MS = 10;

/**
 * A group that is not needed any more, from the request to its slots, which as many other rollouts wait for: a slot is
 * given on when the sandbox is proven to be gone. The way is the same for every reason for which a group is ended.
 */
export async function groupEnd(): Promise<void> {
  using scratch = tempDir();
  await using engine = await simulate(scratch.path, [{ match: "bench", variants: VARIANTS }]);
  const driver = ["--driver", "bubblewrap", "--bwrap", environment("ROLLOUTD_BWRAP")];
  const slots = ["--run-slots", String(ROLLOUTS)];
  const flags = [...sandboxFlags(), ...driver, ...slots, "--backend", engine.url];
  await using service = await serve(scratch.file("data"), flags);
  const call = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const init =
      body === undefined
        ? {}
        : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const url = `http://localhost${path}`;
    const response = await fetch(url, { method, unix: service.socket, ...init });
    if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
    return (await response.json()) as T;
  };
  const begin = async (id: string, instance: object) => {
    const group = { id, num_samples: ROLLOUTS, sampling: { seed: 0 }, instance };
    await call("POST", "/v1/groups", group);
    for (let inRun = 0; inRun < ROLLOUTS; ) {
      await Bun.sleep(100);
      const { members, error } = await call<GroupView>("GET", `/v1/groups/${id}`);
      if (error) throw new Error(error.message);
      inRun = members.filter(({ rollout }) => rollout?.stage === "run").length;
    }
  };
  const end = (id: string) => call<GroupView>("DELETE", `/v1/groups/${id}?wait_ms=60000`);
  const endOf = async (id: string): Promise<Ends> => {
    await begin(id, WORKING);
    await begin(`after-${id}`, WAITING);
    await settled(service.pid);
    const before = cpuMs(service.pid);
    const startMs = Date.now();
    const { members } = await end(id);
    const spentMs = cpuMs(service.pid) - before;
    const recorded = members.map(({ rollout }) => Date.parse(rollout?.finished_at ?? "") - startMs);
    const next = await call<GroupView>("GET", `/v1/groups/after-${id}`);
    const taken: number[] = [];
    for (const { rollout } of next.members) {
      const path = `/v1/rollouts/${rollout?.id}/timeline`;
      const { created_at, spans } = await call<TimelineView>("GET", path);
      const run = spans.find(({ kind, stage }) => kind === "work" && stage === "run");
      taken.push(Date.parse(created_at) + (run?.start_ms ?? Number.NaN) - startMs);
    }
    await end(`after-${id}`);
    return { taken, recorded, spentMs };
  };
  const first = await endOf("first");
  await endOf("second");
  const later = await endOf("third");
  // Last, so that no code of the service's has run for it before the first.
  await begin("floor", WORKING);
  await settled(service.pid);
  const floor = await killAll(service.pid);
  await end("floor");
  report("the first group that a service ends", first, floor);
  report("a later one, when its code has run before", later, floor);
}

/** From the request, in milliseconds: when another rollout had its slot, and when its own end was booked. */
type Ends = { taken: number[]; recorded: number[]; spentMs: number };

function report(which: string, { taken, recorded, spentMs }: Ends, floor: number[]): void {
  const floorMs = percentile(floor, 0.5);
  const p50 = percentile(taken, 0.5);
  print({
    bench: "group-end",
    case: `end of a group, in shell commands and calls of the model, until the next rollouts have its slots: ${which}`,
    n: taken.length,
    p50,
    p99: percentile(taken, 0.99),
    unit: "ms",
    against: `SIGKILL from outside until the kernel is done with ${floor.length}: ${floorMs} ms`,
    target: `p50 under ${TARGET_MS} ms`,
    met: p50 < TARGET_MS,
  });
  print({
    ...{ bench: "group-end", case: `until their records are booked: ${which}`, n: recorded.length },
    ...{ p50: percentile(recorded, 0.5), p99: percentile(recorded, 0.99), unit: "ms" },
  });
  const perRollout = spentMs / ROLLOUTS;
  print({
    ...{ bench: "group-end", case: `CPU of the service for one of them: ${which}`, n: ROLLOUTS },
    ...{ p50: perRollout, p99: perRollout, unit: "ms" },
  });
}

/** Kills the sandboxes of a service. @returns when each of them was gone, with all of its processes */
async function killAll(pid: number): Promise<number[]> {
  const starters = childrenOf(pid).filter((starter) => childrenOf(starter).length > 0);
  let left = starters.map((starter) => [starter, ...descendantsOf(starter)]);
  const startMs = performance.now();
  for (const process of left.flat()) killProcess(process);
  const times: number[] = [];
  while (left.length > 0) {
    await Bun.sleep(1);
    const running = left.filter((pids) => pids.some((one) => processStartTime(one) !== null));
    const goneMs = performance.now() - startMs;
    times.push(...Array.from({ length: left.length - running.length }, () => goneMs));
    left = running;
  }
  return times;
}

/** Resolves when no further rollout of a service comes to its command. */
async function settled(pid: number): Promise<void> {
  let commands = 0;
  for (let sinceMs = performance.now(); performance.now() - sinceMs < QUIET_MS; ) {
    await Bun.sleep(LOOK_MS);
    const now = descendantsOf(pid).filter((it) => commandOf(it) === COMMAND).length;
    if (now !== commands || now === 0) sinceMs = performance.now();
    commands = now;
  }
}

function commandOf(pid: number): string {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ").trim();
  } catch {
    return "";
  }
}

/** What a process has used of the processor, in all of its threads. */
function cpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]?.split(" ") ?? [];
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}
