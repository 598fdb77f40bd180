import { readFileSync } from "node:fs";
import { type Service, serve } from "../test/support/binary.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { percentile, print, round } from "./line.ts";

const SINGLES = 2000;
const BATCHES = 60;
const BATCH = 100;
const CLIENTS = 16;
/** Waits in INIT for longer than the bench takes, so that only the API is measured. */
const IDLE = { data_source: "echo", run_ms: 600_000 };

type Send = (path: string, body?: unknown) => Promise<Response>;

/** What a submit, a get and a waiting client cost, each durable, over both ways in. */
export async function api(): Promise<void> {
  using data = tempDir();
  await using service = await serve(data.path, ["--run-slots", "1", "--init-slots", "1"]);
  const ways: [string, Send][] = [
    ["uds", sender("http://localhost", service.socket)],
    ["tcp", sender(service.url)],
  ];
  for (const [name, send] of ways) {
    const floor = await timed(SINGLES, () => send("/healthz"));
    const single = await timed(SINGLES, () => send("/v1/rollouts", { instance: IDLE }));
    report(name, "single submits", SINGLES, single, floor);
    const rollouts = Array.from({ length: BATCH }, () => ({ instance: IDLE }));
    const batches = await timed(BATCHES, () => send("/v1/rollouts", { rollouts }));
    report(name, `submits in batches of ${BATCH}`, BATCHES * BATCH, batches, floor);
    const id = `known-${name}`;
    await send("/v1/rollouts", { id, instance: IDLE });
    report(name, "gets", SINGLES, await timed(SINGLES, () => send(`/v1/rollouts/${id}`)), floor);
  }
  await waiting(service, ways[1]?.[1] as Send);
}

/** Clients that wait for a rollout, by plain sockets: `fetch` has no more than 256 requests open at once. */
async function waiting({ pid, url }: Service, send: Send): Promise<void> {
  const before = rssMb(pid);
  const { hostname, port } = new URL(url);
  const poll = `GET /v1/rollouts/known-tcp?wait_ms=600000 HTTP/1.1\r\nHost: ${hostname}\r\n\r\n`;
  const open: { end(): void }[] = [];
  for (const clients of [1000, 10_000]) {
    while (open.length < clients) {
      const socket = await Bun.connect({ hostname, port: Number(port), socket: { data() {} } });
      socket.write(poll);
      open.push(socket);
    }
    const times = await timed(200, () => send("/v1/rollouts/known-tcp"));
    print({
      bench: "api",
      case: `a get beside ${clients} open long polls: RSS ${rssMb(pid)} MB (${before} before)`,
      n: 200,
      p50: percentile(times, 0.5),
      p99: percentile(times, 0.99),
      unit: "ms",
      target: "under 400 MB",
      met: rssMb(pid) < 400,
    });
  }
  for (const socket of open) socket.end();
}

function report(way: string, what: string, jobs: number, times: Timed, floor: Timed): void {
  print({
    bench: "api",
    case: `${way}: ${what}, ${CLIENTS} clients: ${Math.round(jobs / times.seconds)}/s`,
    n: times.length,
    p50: percentile(times, 0.5),
    p99: percentile(times, 0.99),
    unit: "ms per request",
    against: "GET /healthz, the same way",
    ratio: round(percentile(times, 0.5) / percentile(floor, 0.5)),
  });
}

type Timed = number[] & { seconds: number };

async function timed(count: number, work: () => Promise<Response>): Promise<Timed> {
  const times: number[] = [];
  const startMs = performance.now();
  let left = count;
  const client = async () => {
    while (left-- > 0) {
      const sentMs = performance.now();
      const response = await work();
      await response.arrayBuffer();
      if (!response.ok) throw new Error(`HTTP ${response.status}`);
      times.push(performance.now() - sentMs);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, client));
  return Object.assign(times, { seconds: (performance.now() - startMs) / 1000 });
}

function sender(base: string, unix?: string): Send {
  return (path, body) =>
    fetch(base + path, {
      ...(unix ? { unix } : {}),
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
    });
}

function rssMb(pid: number): number {
  const kb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kb) / 1024);
}
