import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { descendantsOf } from "../../src/lib/proc.ts";
import {
  environment,
  mathRow,
  type Service,
  sandboxFlags,
  serve,
  simulate,
  turn,
} from "../support/binary.ts";
import { tempDir } from "../support/temp-dir.ts";
import { waitFor } from "../support/wait-for.ts";

const STEADY_S = Number(process.env.ROLLOUTD_TEST_STEADY_S ?? 2);
/** What allocators keep between two looks at an idle service; a long run has to stay within it as well. */
const NOISE_BYTES = 64 * 1024 * 1024;
const AT_ONCE = 4;

/** What a service holds that could leak. */
function holdings({ pid }: Service, data: string) {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  const mounts = readFileSync("/proc/self/mountinfo", "utf8").split("\n");
  return {
    rssBytes: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) * 1024,
    descriptors: readdirSync(`/proc/${pid}/fd`).length,
    children: descendantsOf(pid).length,
    mounts: mounts.filter((line) => line.includes(data)).length,
    folders: readdirSync(join(data, "sandboxes")).filter((name) => name !== ".trash").length,
  };
}

test(`P20: after ${STEADY_S} s of every kind of work an idle service holds what it held before`, async () => {
  using dir = tempDir();
  const data = dir.file("data");
  const cells = [
    turn("execute_ipython_cell", { code: "print('x' * 200_000); print(42)" }),
    turn("finish", { message: "\\boxed{42}" }),
  ];
  await using engine = await simulate(dir.path, [{ match: "steady", variants: [cells] }]);
  await using service = await serve(data, [
    ...[...sandboxFlags(), "--driver", "bubblewrap", "--bwrap", environment("ROLLOUTD_BWRAP")],
    ...["--backend", engine.url, "--warm-sandboxes", "0"],
  ]);
  const ask = async (path: string, init: RequestInit = {}) => {
    const response = await fetch(`http://localhost${path}`, { ...init, unix: service.socket });
    return [response.status, await response.arrayBuffer()] as const;
  };
  const post = (path: string, body: unknown) =>
    ask(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  let jobs = 0;
  /** One client's round: right and wrong work, reads of every form, what is cancelled, and streams that are left. */
  const round = async () => {
    const id = `s${jobs++}`;
    const [status] = await post("/v1/rollouts?wait_ms=30000", {
      id,
      instance: mathRow("steady", "42"),
    });
    expect(status).toBe(201);
    const echo = { data_source: "echo", run_ms: 2 };
    await post("/v1/rollouts", {
      rollouts: Array.from({ length: 50 }, () => ({ instance: echo })),
    });
    await post("/v1/rollouts", { id: `${id}-long`, instance: { ...echo, run_ms: 60_000 } });
    for (const accept of ["application/json", "application/msgpack", "application/x-protobuf"]) {
      const headers = { accept, "accept-encoding": "gzip" };
      expect((await ask(`/v1/rollouts/${id}/trajectory`, { headers }))[0]).toBe(200);
    }
    const left = new AbortController();
    const stream = ask("/v1/events?after=0", { signal: left.signal }).catch(() => null);
    const poll = ask(`/v1/rollouts/${id}-long?wait_ms=30000`, { signal: left.signal }).catch(
      () => null,
    );
    await ask("/metrics");
    await ask("/v1/rollouts?order=finished&limit=100");
    expect((await post("/v1/rollouts", { instance: { data_source: "nothing" } }))[0]).toBe(400);
    left.abort();
    await Promise.all([stream, poll]);
    await ask(`/v1/rollouts/${id}-long?wait_ms=10000`, { method: "DELETE" });
  };
  const work = async (seconds: number) => {
    const until = performance.now() + seconds * 1000;
    const client = async () => {
      do await round();
      while (performance.now() < until);
    };
    await Promise.all(Array.from({ length: AT_ONCE }, client));
    await waitFor(async () => {
      const [, status] = await ask("/v1/status");
      return (
        (JSON.parse(Buffer.from(status).toString()) as { unfinished: number }).unfinished === 0
      );
    }, "an idle service");
    await waitFor(() => descendantsOf(service.pid).length === 0, "its sandboxes to end");
    return holdings(service, data);
  };
  const before = await work(STEADY_S / 2);
  const begun = jobs;
  const after = await work(STEADY_S);
  const { rssBytes, descriptors, ...counts } = after;
  const grown = {
    bytes: rssBytes - before.rssBytes,
    descriptors: descriptors - before.descriptors,
  };
  console.log(
    `${(jobs - begun) * 53} rollouts in ${STEADY_S} s:`,
    JSON.stringify({ before, after }),
  );
  expect(counts).toEqual({ children: 0, mounts: 0, folders: 0 });
  // Connections of this client that are kept open, or not.
  expect(grown.descriptors).toBeLessThanOrEqual(2 * AT_ONCE);
  expect(grown.bytes).toBeLessThan(NOISE_BYTES);
}, 3_600_000);
