import type { GroupView } from "../../src/protocol/group-view.ts";
import { presetOf } from "../../src/simulator/presets.ts";
import type { Trajectory } from "../../src/trajectory/record.ts";
import {
  type Running,
  run,
  type Service,
  serve,
  simulate,
  turn,
} from "../../test/support/binary.ts";
import { tempDir } from "../../test/support/temp-dir.ts";
import { print, round } from "../line.ts";
import { type Played, play } from "./cluster.ts";
import { OPENHANDS, type Rollout, rolloutsOf } from "./rollouts.ts";

const PRESET = "qwen3-14b@h100";
const BACKENDS = 2;
const PER_BACKEND = 32;
/** Some begin later, and contexts outgrow the memory. */
const SLOTS = 24 * BACKENDS;
/** With more the service's own milliseconds would be too large a part of a turn. */
const SPEED = 10;
/** What the names of the tool and the template's tokens add to a turn and to an observation. Units: tokens. */
const AROUND = { call: 90, observation: 70, prompt: 300 };
const LOOK_MS = 5_000 / SPEED;

/**
 * The check that virtual time is no fiction: the compiled service, engines of their own, and a server whose tools take as long
 * as they are told. What became of each rollout is then played in virtual time.
 */
export async function overService(): Promise<void> {
  using dir = tempDir();
  using tools = toolServer();
  await using stack = new AsyncDisposableStack();
  const groups = Map.groupBy(rolloutsOf(PER_BACKEND * BACKENDS, OPENHANDS, 0), (one) => one.group);
  const policy = scripts([...groups.values()]);
  const folder = ["--model-dir", dir.file("model")];
  const engines: Running[] = [];
  for (let at = 0; at < BACKENDS; at++) {
    const options = [...folder, "--preset", PRESET, "--speed", `${SPEED}`, "--wire", "vllm"];
    engines.push(stack.use(await simulate(dir.path, policy, options)));
  }
  const first = engines[0]?.line ?? "";
  const flags = [
    "--backend",
    first,
    ...folder,
    "--run-slots",
    `${SLOTS}`,
    "--task-urls",
    tools.url,
  ];
  const looks = ["--load-poll-ms", `${LOOK_MS}`];
  const service = stack.use(await serve(dir.file("data"), [...flags, ...looks]));
  for (const { line } of engines.slice(1)) {
    await run(["backends", "add", line, ...folder, "--server", service.socket]);
  }
  const startMs = performance.now();
  const ended = await Promise.all(
    [...groups.values()].map((siblings, row) => group(service, row, siblings.length, tools.url)),
  );
  const realMs = (performance.now() - startMs) * SPEED;
  const rollouts: Rollout[] = [];
  for (const { id, members } of ended) {
    for (const { id: member } of members) {
      const record = await call<Trajectory>(service, "GET", `/v1/rollouts/${member}/trajectory`);
      rollouts.push(asPlayed(record, id, rollouts.length));
    }
  }
  const options = { policy: "least-work", moves: true, engine: presetOf(PRESET) } as const;
  const size = { backends: BACKENDS, slots: SLOTS, rollouts };
  const virtual = play({ ...options, ...size, speed: SPEED });
  report(realMs, await hitShareOf(engines), virtual);
}

function report(realMs: number, hitShare: number, virtual: Played): void {
  const ratio = round(realMs / virtual.makespanMs);
  const hits = round(hitShare / virtual.hitShare);
  const name = `through the service, ${BACKENDS} engines of their own, ${SPEED} times as fast`;
  const n = PER_BACKEND * BACKENDS;
  print({
    ...{ bench: "balance", case: `${name}: time`, n, p50: ratio, p99: ratio },
    ...{ unit: "times that in virtual time, with its tokens and its tools' times" },
    ...{ target: "within 10 %", met: Math.abs(ratio - 1) <= 0.1 },
  });
  print({
    ...{ bench: "balance", case: `${name}: prefix cache`, n, p50: hits, p99: hits },
    ...{ unit: "times the hits in virtual time", target: "at least 0.99", met: hits >= 0.99 },
  });
}

/** A resources server as NeMo Gym has them, whose one tool takes as long, and answers as much, as it is told. */
function toolServer(): Disposable & { url: string } {
  const server = Bun.serve({
    ...{ port: 0, hostname: "127.0.0.1", idleTimeout: 255 },
    async fetch(request) {
      const body = await request.text();
      const { pathname } = new URL(request.url);
      if (pathname === "/verify") return Response.json({ reward: 1 });
      if (pathname !== "/act") return Response.json({});
      const { ms, bytes } = JSON.parse(body) as { ms: number; bytes: number };
      await Bun.sleep(ms);
      return new Response("x".repeat(bytes));
    },
  });
  return { url: server.url.origin, [Symbol.dispose]: () => void server.stop(true) };
}

/** Seeds count the samples, and each byte is a token. */
function scripts(groups: Rollout[][]) {
  return groups.map((siblings, row) => ({
    match: `row ${row}:`,
    variants: siblings.map(({ turns }) =>
      turns.map(({ outputTokens, observationTokens, toolMs }, at) => {
        if (at === turns.length - 1) return { content: "x".repeat(outputTokens) };
        const bytes = Math.max(1, observationTokens - AROUND.observation);
        const content = "x".repeat(Math.max(1, outputTokens - AROUND.call));
        return { content, ...turn("act", { ms: Math.round(toolMs / SPEED), bytes }) };
      }),
    ),
  }));
}

function group(service: Service, row: number, samples: number, url: string): Promise<GroupView> {
  const parameters = {
    type: "object",
    properties: { ms: { type: "number" }, bytes: { type: "number" } },
  };
  const content = `row ${row}: ${"x".repeat(4_000 - AROUND.prompt)}`;
  const instance = {
    ...{ data_source: "http", verifier: { protocol: "nemo_gym", url } },
    responses_create_params: {
      input: [{ role: "user", content }],
      tools: [{ type: "function", name: "act", description: "act", parameters }],
    },
  };
  const plan = { id: `g${row}`, num_samples: samples, sampling: { seed: 0 } };
  const body = { ...plan, instance, agent: { max_turns: 64 } };
  return call(service, "POST", "/v1/groups?wait_ms=600000", body);
}

async function call<T>(
  { socket }: Service,
  method: string,
  path: string,
  body?: object,
): Promise<T> {
  const init =
    body === undefined
      ? {}
      : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
  const response = await fetch(`http://localhost${path}`, { unix: socket, method, ...init });
  if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
  return (await response.json()) as T;
}

/** Its tokens, and between two calls what its tools took, with the service's own time. */
function asPlayed({ turns }: Trajectory, name: string, index: number): Rollout {
  const promptTokens = turns[0]?.prompt_tokens ?? 0;
  const played = turns.map((now, at) => {
    const outputTokens = now.completion_tokens ?? 0;
    const next = turns[at + 1];
    if (!next) return { outputTokens, observationTokens: 0, toolMs: 0 };
    const observationTokens = (next.prompt_tokens ?? 0) - (now.prompt_tokens ?? 0) - outputTokens;
    const betweenMs = next.started_ms - next.waited_ms - now.started_ms - now.engine_ms;
    return { outputTokens, observationTokens, toolMs: Math.max(0, betweenMs) * SPEED };
  });
  return { index, group: name, promptTokens, turns: played };
}

/** Of the tokens of all prompts, as the engines count them. */
async function hitShareOf(engines: Running[]): Promise<number> {
  let [queries, hits] = [0, 0];
  for (const { line } of engines) {
    const text = await (await fetch(new URL("/metrics", line))).text();
    queries += Number(text.match(/^vllm:prefix_cache_queries_total\S* (\S+)$/m)?.[1]);
    hits += Number(text.match(/^vllm:prefix_cache_hits_total\S* (\S+)$/m)?.[1]);
  }
  return hits / queries;
}
