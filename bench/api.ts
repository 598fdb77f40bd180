import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Service, serve } from "../test/support/binary.ts";
import { tempDir } from "../test/support/temp-dir.ts";
import { type Load, pace, saturate } from "./api-load.ts";
import { KeepAlive, request, type Target } from "./keep-alive.ts";
import { percentile, print, round } from "./line.ts";
import { pythonWith } from "./rival.ts";

const ROUNDS = 3;
const ROUND_MS = 1000;
const HALF_LOAD_ROUNDS = 3;
const HALF_LOAD_MS = 2000;
const BATCH = 100;
const FLOOR = join(import.meta.dir, "rivals/floor.ts");
const IDLE_KIND = join(import.meta.dir, "idle-kind.ts");
/** One is in INIT and the others wait for it, so that only the API is measured. */
const IDLE = { data_source: "idle" };
const KNOWN = "known";

const SINGLE = request("POST", "/v1/rollouts", { instance: IDLE });
const MANY = request("POST", "/v1/rollouts", {
  rollouts: Array.from({ length: BATCH }, () => ({ instance: IDLE })),
});
const GET = request("GET", `/v1/rollouts/${KNOWN}`);

type Case = { what: string; send: Buffer; clients: number; jobs: number; target?: number };
const CASES: Case[] = [
  // Few wait for the same commit, and many do: a trainer has as many rollouts submitted at once as run.
  { what: "single submits", send: SINGLE, clients: 16, jobs: 1, target: 4 },
  { what: "single submits", send: SINGLE, clients: 64, jobs: 1, target: 4 },
  { what: `submits in batches of ${BATCH}`, send: MANY, clients: 16, jobs: BATCH, target: 20 },
  { what: "gets", send: GET, clients: 16, jobs: 1 },
];

/** What a submit, a get and a waiting client cost, each durable, beside a server that keeps nothing. */
export async function api(): Promise<void> {
  using data = tempDir();
  await using service = await serve(data.path, ["--init-slots", "1", "--tasks", IDLE_KIND]);
  await using rival = await startRival();
  const tcp = addressOf(service.url);
  const targets: [string, Target][] = [
    ["uds", { unix: service.socket }],
    ["tcp", tcp],
    ...(rival ? [["fastapi", rival.target] as [string, Target]] : []),
  ];
  for (const target of [tcp, ...(rival ? [rival.target] : [])]) {
    const client = await KeepAlive.open(target);
    await client.send(request("POST", "/v1/rollouts", { id: KNOWN, instance: IDLE }));
    client.end();
  }
  let singlesPerSecond = 0;
  let theirSingles: Load | undefined;
  for (const one of CASES) {
    const loads = await inTurns(targets, one);
    const theirs = loads.get("fastapi");
    for (const [name, load] of loads) report(name, one, load, theirs);
    if (one.send === SINGLE) {
      singlesPerSecond = loads.get("tcp")?.perSecond ?? 0;
      if (theirs && theirs.perSecond > (theirSingles?.perSecond ?? 0)) theirSingles = theirs;
    }
    // The target can be read as times its batches, or as times the rollouts that it takes one by one.
    if (one.send === MANY && theirSingles) {
      for (const [name, load] of loads) reportBesideSingles(name, one, load, theirSingles);
    }
  }
  await halfLoad(tcp, singlesPerSecond / 2);
  await waiting(service, tcp);
}

/** The machine is not equally fast all the time, so none of them has it to itself for long. */
async function inTurns(
  targets: [string, Target][],
  { send, clients }: Case,
): Promise<Map<string, Load>> {
  const rounds = new Map<string, Load[]>(targets.map(([name]) => [name, []]));
  for (let index = 0; index < ROUNDS; index++) {
    for (const [name, target] of targets) {
      rounds.get(name)?.push(await saturate(target, send, clients, ROUND_MS));
    }
  }
  return new Map(
    [...rounds].map(([name, loads]) => {
      const times = loads.flatMap((load) => load.times);
      const perSecond = loads.reduce((sum, load) => sum + load.perSecond, 0) / ROUNDS;
      return [name, { times, perSecond }];
    }),
  );
}

function report(
  name: string,
  { what, clients, jobs, target }: Case,
  load: Load,
  theirs?: Load,
): void {
  const compared = name !== "fastapi" && theirs;
  const ratio = compared ? round(load.perSecond / theirs.perSecond) : 0;
  print({
    bench: "api",
    case: `${name}: ${what}, ${clients} clients: ${Math.round(load.perSecond * jobs)}/s`,
    ...{ n: load.times.length, unit: "ms per request" },
    ...{ p50: percentile(load.times, 0.5), p99: percentile(load.times, 0.99) },
    ...(compared ? { against: "FastAPI and uvicorn, in memory: times its rate", ratio } : {}),
    ...(compared && target ? { target: `at least ${target}`, met: ratio >= target } : {}),
  });
}

function reportBesideSingles(
  name: string,
  { what, clients, jobs, target = 0 }: Case,
  load: Load,
  theirs: Load,
) {
  const ratio = round((load.perSecond * jobs) / theirs.perSecond);
  print({
    bench: "api",
    case: `${name}: ${what}, ${clients} clients: ${Math.round(load.perSecond * jobs)}/s`,
    ...{ n: load.times.length, unit: "ms per request" },
    ...{ p50: percentile(load.times, 0.5), p99: percentile(load.times, 0.99) },
    ...{ against: "FastAPI and uvicorn, in memory: times its single submits", ratio },
    ...(name === "fastapi" ? {} : { target: `at least ${target}`, met: ratio >= target }),
  });
}

/** Beside a server that does nothing, and one that does nothing but sync: the generator's part, and the disk's. */
async function halfLoad(target: Target, perSecond: number): Promise<void> {
  using folder = tempDir();
  await using empty = await startServer([process.execPath, FLOOR, "empty"]);
  await using synced = await startServer([process.execPath, FLOOR, "synced", folder.file("kept")]);
  const targets: [string, Target][] = [
    ["tcp", target],
    ["a server that only answers", empty.target],
    ["a server that only syncs a file and answers", synced.target],
  ];
  const times = new Map<string, number[]>(targets.map(([name]) => [name, []]));
  for (let round = 0; round < HALF_LOAD_ROUNDS; round++) {
    for (const [name, one] of targets) {
      times.get(name)?.push(...(await pace(one, SINGLE, perSecond, HALF_LOAD_MS)));
    }
  }
  for (const [name, all] of times) {
    const p99 = percentile(all, 0.99);
    print({
      bench: "api",
      case: `${name}: single submits at half load: ${Math.round(perSecond)}/s, from when each was due`,
      ...{ n: all.length, p50: percentile(all, 0.5), p99, unit: "ms" },
      ...(name === "tcp" ? { target: "p99 under 10 ms", met: p99 < 10 } : {}),
    });
  }
}

async function waiting({ pid, url }: Service, target: Target): Promise<void> {
  const before = rssMb(pid);
  const poll = request("GET", `/v1/rollouts/${KNOWN}?wait_ms=600000`);
  const open: KeepAlive[] = [];
  for (const clients of [1000, 10_000]) {
    while (open.length < clients) {
      const client = await KeepAlive.open(target);
      client.start(poll);
      open.push(client);
    }
    await untilWaiting(url, clients);
    const { times } = await saturate(target, GET, 16, ROUND_MS);
    const rss = rssMb(pid);
    print({
      bench: "api",
      case: `gets beside ${clients} open long polls: RSS ${rss} MB (${before} before)`,
      ...{ n: times.length, p50: percentile(times, 0.5), p99: percentile(times, 0.99), unit: "ms" },
      ...{ target: "under 400 MB", met: rss < 400 },
    });
  }
  for (const client of open) client.end();
}

/** Only what the server itself counts is taken for open. */
async function untilWaiting(url: string, clients: number): Promise<void> {
  for (const untilMs = performance.now() + 30_000; ; await Bun.sleep(20)) {
    const text = await (await fetch(`${url}/metrics`)).text();
    const count = Number(/^rolloutd_waiting_requests (\d+)/m.exec(text)?.[1]);
    if (count === clients) return;
    if (performance.now() > untilMs) throw new Error(`${count} of ${clients} long polls are open`);
  }
}

type Server = AsyncDisposable & { target: Target };

/** Null, and said so, where its packages can't be had. */
async function startRival(): Promise<Server | null> {
  const python = await pythonWith("fastapi==0.115.12", "uvicorn[standard]==0.34.2");
  return python === null ? null : startServer([python, join(import.meta.dir, "rivals/api.py")]);
}

/** @param argv a program whose first line of output is its port */
async function startServer(argv: string[]): Promise<Server> {
  const child = Bun.spawn(argv, { stdio: ["ignore", "pipe", "inherit"] });
  const { value } = await child.stdout[Symbol.asyncIterator]().next();
  const target = { hostname: "127.0.0.1", port: Number(Buffer.from(value ?? []).toString()) };
  await reachable(target);
  return {
    target,
    async [Symbol.asyncDispose]() {
      child.kill();
      await child.exited;
    },
  };
}

/** Its port is bound before it listens. */
async function reachable(target: Target): Promise<void> {
  for (const untilMs = performance.now() + 20_000; ; await Bun.sleep(20)) {
    const client = await KeepAlive.open(target).catch(() => null);
    client?.end();
    if (client) return;
    if (performance.now() > untilMs) throw new Error("the rival does not listen");
  }
}

function addressOf(url: string): Target {
  const { hostname, port } = new URL(url);
  return { hostname, port: Number(port) };
}

function rssMb(pid: number): number {
  const kb = /VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Math.round(Number(kb) / 1024);
}
