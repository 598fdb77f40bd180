import { describe, expect, test } from "bun:test";
import { readLoads, readMetrics } from "../../src/inference/engine-load.ts";
import { LoadWatch } from "../../src/inference/load-watch.ts";
import { SessionEnds } from "../../src/inference/session-end.ts";
import { waitFor } from "../support/wait-for.ts";
import { balanceSetup } from "./balance-setup.ts";
import { profileOf } from "./token-setup.ts";

const HEALTH = { failuresInARow: 3, ejectMs: 60_000, maxEjectMs: 60_000 };

describe("an engine's load", () => {
  test("is read from vLLM's metrics, new and old, over all its ranks", () => {
    const text = [
      "# HELP vllm:num_requests_running Requests",
      'vllm:num_requests_running{engine="0"} 3.0',
      'vllm:num_requests_running{engine="1"} 4.0',
      'vllm:num_requests_waiting{engine="0"} 2.0',
      'vllm:gpu_cache_usage_perc{engine="0"} 0.25',
      'vllm:gpu_cache_usage_perc{engine="1"} 0.5',
      "vllm:num_preemptions_total 7.0",
      'vllm:cache_config_info{block_size="16",num_gpu_blocks="100"} 1.0',
    ].join("\n");
    const load = { running: 7, waiting: 2, kvUse: 0.5, kvTokens: 1_600, preemptions: 7 };
    const cache = { cacheQueries: null, cacheHits: null };
    expect(readMetrics(text)).toEqual({ ...load, ...cache });
    const counted = `${text}\nvllm:prefix_cache_queries_total 9\nvllm:prefix_cache_hits_total 4`;
    expect(readMetrics(counted)).toMatchObject({ cacheQueries: 9, cacheHits: 4 });
  });

  test("is read in little time, however often one figure is told", () => {
    const text = "vllm:num_requests_running 1\n".repeat(140_000);
    const before = process.cpuUsage();
    expect(readMetrics(text)?.running).toBe(140_000);
    const { user, system } = process.cpuUsage(before);
    expect((user + system) / 1e6).toBeLessThan(2);
  });

  test("is read from SGLang's, whichever separator its exporter writes, and its other routes", () => {
    const text = "sglang_num_running_reqs 5\nsglang_num_queue_reqs 1\nsglang_token_usage 0.75";
    const cache = { cacheQueries: null, cacheHits: null };
    const unknown = { kvTokens: null, preemptions: null, ...cache };
    expect(readMetrics(text)).toEqual({ running: 5, waiting: 1, kvUse: 0.75, ...unknown });
    expect(readLoads([{ num_reqs: 9, num_waiting_reqs: 4 }])).toEqual({
      ...{ running: 5, waiting: 4, kvUse: null, ...unknown },
    });
    const loads = [
      { num_running_reqs: 2, token_usage: 0.2, max_total_num_tokens: 10 },
      { num_running_reqs: 3, token_usage: 0.4, max_total_num_tokens: 20 },
    ];
    expect(readLoads({ loads })?.kvUse).toBeCloseTo(0.3);
    expect(readLoads({ loads })).toMatchObject({ running: 5, waiting: 0, kvTokens: 30 });
  });

  test("is not made up from anything else", () => {
    expect([readMetrics("<html>"), readMetrics("process_cpu_seconds_total 4")]).toEqual([
      null,
      null,
    ]);
    expect([readLoads({}), readLoads([]), readLoads([{ other: 1 }])]).toEqual([null, null, null]);
  });
});

/** The set-up of balancing, with a look at all loads on demand. */
function setup() {
  const t = balanceSetup();
  const load = new LoadWatch({
    ...{
      registry: t.registry,
      clock: { nowMs: () => 0 },
      health: HEALTH,
      plan: () => t.desk.plan(),
    },
    ...{ pollMs: 3_600_000, maxTurns: 100 },
  });
  return {
    ...{ ...t, load },
    async [Symbol.asyncDispose]() {
      load[Symbol.dispose]();
      await t[Symbol.asyncDispose]();
    },
  };
}

describe("a backend whose memory is known", () => {
  test("has as many turns as contexts have room, as long as it shows no trouble", async () => {
    await using t = setup();
    const kvTokens = 64_000;
    t.registry.add((await t.simulate("a", { kvTokens, maxModelLen: 8_000 })).backend);
    t.load.look();
    const entry = t.registry.get("a");
    await waitFor(() => entry?.kvTokens === kvTokens, "its memory");
    expect(entry?.admission.limit).toBe(100);
    expect(t.registry.list()[0]?.engine).toEqual({ running: 0, waiting: 0 });
  });

  test("takes only trajectories whose contexts fit into it", async () => {
    await using t = setup();
    t.registry.add((await t.simulate("a")).backend);
    const entry = t.registry.get("a");
    if (entry) entry.kvTokens = 20_000;
    const available = [0, 1].map(() => {
      t.rollout();
      return t.registry.available();
    });
    expect(available).toEqual([true, false]);
  });

  test("by the routes of SGLang has its load, though nothing of its memory", async () => {
    await using t = setup();
    t.registry.add((await t.simulate("a", { wire: "sglang" })).backend);
    const entry = t.registry.get("a");
    await waitFor(() => {
      t.load.look();
      return entry?.engine;
    }, "its load");
    expect([entry?.kvTokens, entry?.kvUse]).toEqual([null, null]);
  });
});

test("a backend that dies while nobody calls it is found out all the same", async () => {
  await using t = setup();
  const engine = await t.simulate("a");
  t.registry.add(engine.backend);
  await engine.stop();
  await waitFor(() => {
    t.load.look();
    return t.registry.get("a")?.health.state === "ejected";
  }, "its ejection");
  expect(t.registry.available()).toBe(false);
});

test("a router is told which session is over, and one that keeps none is told once only", async () => {
  const asked: string[] = [];
  const serve = (status: number) =>
    Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      fetch: ({ method, url }) => {
        asked.push(`${status} ${method} ${new URL(url).pathname}${new URL(url).search}`);
        return new Response("", { status });
      },
    });
  using ends = new SessionEnds();
  const tell = async (status: number, sessions: string[]) => {
    const server = serve(status);
    const url = `http://127.0.0.1:${server.port}/v1`;
    const backend = { id: `b${status}`, url, model: "m", profile: profileOf("completions") };
    await Promise.all(sessions.map((session) => ends.tell(backend, session)));
    await server.stop();
  };
  await tell(404, ["job 1", "job 2"]);
  await tell(200, ["job 1", "job 2"]);
  // Whatever is wrong there for the moment.
  await tell(500, ["job 1", "job 2"]);
  expect(asked).toEqual([
    "404 POST /finish_session?session_id=job%201",
    "200 POST /finish_session?session_id=job%201",
    "200 POST /finish_session?session_id=job%202",
    "500 POST /finish_session?session_id=job%201",
    "500 POST /finish_session?session_id=job%202",
  ]);
});
