/**
 * The example of a service in a Slurm job, under a real Slurm: its daemons and commands as Debian has them, fetched
 * once by scripts/setup.d/slurm, and run by whoever runs the tests.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join, resolve } from "node:path";
import type { RolloutView } from "../../src/protocol/view.ts";
import { BINARY, mathRow, sandboxFlags, simulate, turn } from "../support/binary.ts";
import { startSlurm } from "../support/slurm.ts";
import { tempDir } from "../support/temp-dir.ts";
import { processesOf } from "../support/traces.ts";
import { waitFor } from "../support/wait-for.ts";

const SCRIPT = resolve(import.meta.dir, "../../scripts/examples/slurm.sh");
/** With the download. */
const SETUP_MS = 300_000;

let slurm: Awaited<ReturnType<typeof startSlurm>>;
beforeAll(async () => {
  slurm = await startSlurm();
}, SETUP_MS);
afterAll(() => slurm[Symbol.asyncDispose]());

/** Leaves processes in the sandbox that don't want to go. */
const STUBBORN = `import subprocess
command = ["sh", "-c", "trap '' TERM HUP INT; sleep 300 & sleep 300"]
subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
print(1 + 1)`;
const POLICY = [
  turn("execute_ipython_cell", { code: STUBBORN }),
  turn("finish", { message: "\\boxed{{{observation}}}" }),
];

/** An engine that answers each rollout's first call, and its later ones when it is freed. */
async function holdingEngine(dir: string) {
  const engine = await simulate(dir, [{ match: "held", variants: [POLICY] }]);
  const freed = Promise.withResolvers<void>();
  const door = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1", idleTimeout: 0 },
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const body = request.body && (await request.text());
      if (body?.includes('"role":"assistant"')) await freed.promise;
      const { method, headers } = request;
      return await fetch(new URL(pathname, engine.url), { method, headers, body });
    },
  });
  return {
    url: new URL("/v1", door.url).href,
    free: freed.resolve,
    async [Symbol.asyncDispose]() {
      await door.stop(true);
      await engine[Symbol.asyncDispose]();
    },
  };
}

/** A data folder, and the example as a job that serves from it. */
function service(engine: { url: string }) {
  const dir = tempDir();
  const data = dir.path;
  const unix = join(data, "rolloutd.sock");
  const ask = async (path: string, init: RequestInit = {}) =>
    await fetch(`http://localhost${path}`, { ...init, unix });
  const finished = async () => {
    const page = await ask("/v1/rollouts?order=finished&limit=100").then((it) => it.json());
    const { rollouts } = page as { rollouts: RolloutView[] };
    const ends = rollouts.map(({ id, state, reward, attempt }) => [id, state, reward, attempt]);
    return ends.toSorted();
  };
  return {
    data,
    finished,
    sbatch: (...args: string[]) =>
      slurm.sbatch({
        script: SCRIPT,
        args: [
          "--port",
          "0",
          "--backend",
          engine.url,
          "--engine",
          "text",
          ...sandboxFlags(),
          ...args,
        ],
        env: { ROLLOUTD: BINARY, ROLLOUTD_DATA_DIR: data },
      }),
    /** Waits until it serves in this job. */
    async serves(job: string): Promise<void> {
      const isReady = async () => (await ask("/readyz").catch(() => null))?.ok;
      await waitFor(isReady, `the service in ${data}`).catch((cause) => {
        throw new Error(slurm.output(job), { cause });
      });
    },
    /** Two rollouts, which are held within RUN with processes in their sandboxes, and one that ends at once. */
    async submit(): Promise<void> {
      const held = ["a", "b"].map((id) => ({ id, instance: mathRow("held", "2") }));
      const rollouts = [{ id: "echo", instance: { data_source: "echo" } }, ...held];
      const body = JSON.stringify({ rollouts });
      expect(
        (
          await ask("/v1/rollouts", {
            method: "POST",
            headers: { "content-type": "application/json" },
            body,
          })
        ).status,
      ).toBe(201);
      const stubborn = () => processesOf(data).filter((line) => /^\d+ sleep 300$/.test(line));
      await waitFor(() => stubborn().length === 4, "the held rollouts' processes");
      await waitFor(async () => (await finished()).length === 1, "the end of the other one");
    },
    ends: () => waitFor(async () => (await finished()).length === 3 && finished(), "three ends"),
    /** Nothing of it is left on the node. */
    async isGone(): Promise<void> {
      await waitFor(() => processesOf(data).length === 0, "its processes to be gone");
    },
    [Symbol.dispose]: () => dir[Symbol.dispose](),
  };
}

/** How the three of `submit` end: those that were held in the attempt that is named. */
const ends = (attempt: number) => [
  ["a", "succeeded", 1, attempt],
  ["b", "succeeded", 1, attempt],
  ["echo", "succeeded", 1, 1],
];

test("P11: at Slurm's early signal a service hands its rollouts on to its job's next start, which ends them", async () => {
  using dir = tempDir();
  await using engine = await holdingEngine(dir.path);
  using one = service(engine);
  const job = await one.sbatch("--drain-ms", "1");
  await one.serves(job);
  await one.submit();
  await slurm.scancel("--signal=USR1", "--batch", job);
  const requeued = async () => {
    const { JobState, Restarts } = await slurm.job(job);
    return JobState === "PENDING" && Restarts === "1";
  };
  await waitFor(requeued, "the job's requeue");
  await one.isGone();
  engine.free();
  await one.serves(job);
  expect(await one.ends()).toEqual(ends(2));
  // Nothing is left to be handed on, so it is not requeued again.
  await slurm.scancel("--signal=USR1", "--batch", job);
  await waitFor(async () => (await slurm.job(job)).JobState === "COMPLETED", "the job's end");
  expect(slurm.output(job).match(/rolloutd listens on/g)).toHaveLength(2);
  await one.isGone();
  expect(readdirSync(join(one.data, "sandboxes"))).toEqual([]);
}, 60_000);

test("P6, P7: a job that is cancelled leaves nothing on its node, loses no rollout, and disturbs no other job there", async () => {
  using dir = tempDir();
  await using engine = await holdingEngine(dir.path);
  using killed = service(engine);
  using other = service(engine);
  const [jobToKill, otherJob] = [await killed.sbatch(), await other.sbatch()];
  await Promise.all([killed.serves(jobToKill), other.serves(otherJob)]);
  await Promise.all([killed.submit(), other.submit()]);
  // One folder has one service, and the job that comes second says so.
  const second = await other.sbatch();
  await waitFor(async () => (await slurm.job(second)).JobState === "FAILED", "the refused job");
  expect(slurm.output(second)).toContain("another rolloutd works in");
  // To every process of the job: SIGTERM, and SIGKILL to those that are left after KillWait.
  await slurm.scancel(jobToKill);
  await killed.isGone();
  const isOver = async () => (await slurm.job(jobToKill)).JobState === "CANCELLED";
  await waitFor(isOver, "the end of the cancelled job, which is not requeued");
  const again = await killed.sbatch();
  await killed.serves(again);
  engine.free();
  expect([await killed.ends(), await other.ends()]).toEqual([ends(2), ends(1)]);
  for (const job of [again, otherJob]) await slurm.scancel(job);
  for (const one of [killed, other]) await one.isGone();
}, 60_000);
