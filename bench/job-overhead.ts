import { serve } from "../test/support/binary.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { percentile, print, round } from "./line.ts";

const JOBS = 6000;
const BATCH = 50;
const CLIENTS = 4;
const SINGLE_JOBS = 1500;
const SINGLE_CLIENTS = 32;
const TARGET_PER_SECOND = 2000;

type Send = (method: string, path: string, body?: unknown) => Promise<Response>;

/**
 * Echo jobs through submit, three stages and the result, each commit durable. The floor is the same exchange
 * with a route that does nothing.
 */
export async function jobOverhead(): Promise<void> {
  using data = tempDir();
  await using service = await serve(data.path);
  const transports: [string, Send][] = [
    ["uds", sender("http://localhost", service.socket)],
    ["http", sender(service.url)],
  ];
  for (const [name, send] of transports) {
    await batches(send, 500, "warm-up");
    await throughput(name, send);
    await latency(name, send);
  }
}

function sender(base: string, unix?: string): Send {
  return (method, path, body) =>
    fetch(base + path, {
      method,
      ...(unix ? { unix } : {}),
      ...(body === undefined
        ? {}
        : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
}

/** Trainers submit a step at once: batches from a few clients, each waiting for its results. */
async function throughput(name: string, send: Send): Promise<void> {
  const startMs = performance.now();
  const times = await batches(send, JOBS, name);
  const perSecond = JOBS / ((performance.now() - startMs) / 1000);
  print({
    bench: "job-overhead",
    case: `${name} in batches of ${BATCH}: jobs/s ${Math.round(perSecond)}`,
    n: JOBS,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    unit: "ms per batch",
    target: `at least ${TARGET_PER_SECOND} jobs/s`,
    met: perSecond >= TARGET_PER_SECOND,
  });
}

async function batches(send: Send, jobs: number, label: string): Promise<number[]> {
  const times: number[] = [];
  const rollout = { instance: { data_source: "echo" } };
  let left = jobs / BATCH;
  const client = async () => {
    while (left-- > 0) {
      const startMs = performance.now();
      const rollouts = Array.from({ length: BATCH }, () => rollout);
      const response = await send("POST", "/v1/rollouts", { rollouts, wait_ms: 60_000 });
      const { rollouts: done } = (await response.json()) as { rollouts: { reward: number }[] };
      if (done.some(({ reward }) => reward !== 1)) throw new Error(`${label}: a job failed`);
      times.push(performance.now() - startMs);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return times;
}

/** One job a request, submitted and awaited, beside the same number of empty requests. */
async function latency(name: string, send: Send): Promise<void> {
  const floor = await timed(() => send("GET", "/healthz").then((response) => response.json()));
  const path = "/v1/rollouts?wait_ms=60000";
  const body = { instance: { data_source: "echo" } };
  const startMs = performance.now();
  const times = await timed(() => send("POST", path, body).then((response) => response.json()));
  const perSecond = SINGLE_JOBS / ((performance.now() - startMs) / 1000);
  print({
    bench: "job-overhead",
    case: `${name} one by one, ${SINGLE_CLIENTS} at once: jobs/s ${Math.round(perSecond)}`,
    n: SINGLE_JOBS,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    unit: "ms per job",
    against: "GET /healthz, the same way",
    ratio: round(percentile(times, 0.5) / percentile(floor, 0.5)),
  });
}

async function timed(work: () => Promise<unknown>): Promise<number[]> {
  const times: number[] = [];
  let left = SINGLE_JOBS;
  const client = async () => {
    while (left-- > 0) {
      const startMs = performance.now();
      await work();
      times.push(performance.now() - startMs);
    }
  };
  await Promise.all(Array.from({ length: SINGLE_CLIENTS }, client));
  return times;
}
