import { expect, test } from "bun:test";
import { OPERATIONS } from "../../src/server/openapi/operations.ts";
import { exampleTrajectory } from "../support/trajectories.ts";
import { setup } from "./setup.ts";

const REQUESTS = Number(process.env.ROLLOUTD_TEST_FUZZ ?? 3000);
const SEED = Number(process.env.ROLLOUTD_TEST_SEED ?? Date.now() % 2 ** 31);

const ODD = [
  ...[null, true, 0, -1, 1.5, 1e308, 2 ** 53, "", "x", "\u0000", "../../etc/passwd", "%2f", "é😀"],
  ...[[], {}, [[]], "x".repeat(5000), "{", "a\nb", "step:1", "1"],
];

/** Draws the same requests for the same seed. */
function drawing(seed: number) {
  let x = seed | 1;
  const below = (limit: number) => {
    x ^= x << 13;
    x ^= x >>> 17;
    x ^= x << 5;
    return (x >>> 0) % limit;
  };
  const pick = <T>(from: readonly T[]) => from[below(from.length)] as T;
  const mutate = (value: unknown): unknown => {
    if (below(6) === 0 || typeof value !== "object" || value === null) return pick(ODD);
    if (Array.isArray(value)) return value.map(mutate);
    const entries = Object.entries(value).map(([key, inner]) => {
      const odd = below(12) === 0 ? String(pick(ODD)) : key;
      return [odd, below(2) ? mutate(inner) : inner] as const;
    });
    return Object.fromEntries(entries);
  };
  return { below, pick, mutate };
}

const EXAMPLE = {
  id: "f1",
  instance: { data_source: "echo", reward: 0.5, run_ms: 1 },
  sampling: { temperature: 1, stop: ["x"], seed: 3 },
  agent: { max_turns: 3, tools: ["finish"] },
  limits: { init_ms: 5, total_ms: 900 },
  labels: { step: "1" },
  ...{ priority: 3, lease_ms: 5000, num_attempts: 2, tokens: "auto" },
};
/** The routes of the other APIs. `/start` more often than `/stop`, or nearly all were refused. */
const COMPAT: [route: string, example: unknown][] = [
  ["POST /start", {}],
  ["POST /start", {}],
  ["POST /start", {}],
  ["POST /stop", {}],
  ["GET /status", {}],
  ...Array.from({ length: 3 }, (): [string, unknown] => [
    "POST /process",
    {
      instance: { data_source: "echo", instance_id: 3, prompt: null },
      sampling_params: { temperature: 1, api_key: "k", max_iterations: 3, model: "m" },
      job_id: "j",
    },
  ]),
  ["POST /cancel", { job_id: "j" }],
  ["POST /add_llm_server", { address: "http://127.0.0.1:1/v1" }],
  ["POST /clear_llm_server", {}],
  ["GET /global_config_dict_yaml", {}],
  ["GET /server_instances", {}],
  [
    "POST /run",
    {
      data_source: "echo",
      responses_create_params: {
        input: [{ role: "user", content: [{ text: "Hi." }] }],
        temperature: 0.5,
        max_output_tokens: 5,
        metadata: { a: "b" },
      },
    },
  ],
  [
    "POST /run",
    { responses_create_params: { input: "Hi." }, options: [{ A: "a" }], expected_answer: "A" },
  ],
  ["POST /aggregate_metrics", { verify_responses: [{ reward: 1, _ng_task_index: 0 }] }],
];

const ACCEPTS = [
  ...["*/*", "application/msgpack", "application/x-protobuf", "x/y", ";;,", "a;q=x", "constructor"],
  ...["application/json;q=0, */*;q=0.1", "application/x-protobuf;q=1e9,", "__proto__", ""],
];
const CODINGS = ["gzip", "zstd", "constructor", "__proto__;q=1", "gzip;q=0,*;q=1", "identity;q=0"];

const ROUTES = [
  ...OPERATIONS.map(({ route, example }) => ({ route, example })),
  ...COMPAT.map(([route, example]) => ({ route, example })),
];

const NAMES = ["after", "limit", "order", "state", "label", "kind", "wait_ms", "dry_run", "x"];

test(`${REQUESTS} odd requests on every route are answered or refused, never with a bug`, async () => {
  await using t = setup({ compat: true });
  const record = JSON.stringify(exampleTrajectory());
  for (const thread of t.threads) {
    thread.onStart = (start) =>
      thread.finish(start, start.stage === "run" ? { trajectory: record } : {});
  }
  const { below, pick, mutate } = drawing(SEED);
  const bad: unknown[] = [];
  for (let i = 0; i < REQUESTS; i++) {
    const { route, example } = pick(ROUTES);
    const [method = "", path = ""] = route.split(" ");
    if (path === "/v1/events") continue;
    const id = pick(["f1", "f2", "", "%00", "..%2f", "a b", String(pick(ODD))]);
    const filled = path.replace(/\{\w+\}/g, encodeURIComponent(id));
    const query = new URLSearchParams();
    while (below(2)) query.set(pick(NAMES), String(pick([...ODD, 0, 5, "finished", "active"])));
    // Otherwise the requests would wait for one another.
    if (query.has("wait_ms")) query.set("wait_ms", String(pick([0, 1, "x", -1])));
    const body = pick([example, EXAMPLE, { rollouts: [EXAMPLE, EXAMPLE] }, ...ODD]);
    const text = below(4) ? JSON.stringify(mutate(body) ?? null) : String(pick(ODD));
    const headers = { accept: pick(ACCEPTS), "accept-encoding": pick(CODINGS) };
    const init = { method, headers, ...(method === "POST" ? { body: text } : {}) };
    const response = await t.app.request(`${filled}?${query}`, init, t.env);
    await response.arrayBuffer();
    const json = response.headers.get("content-type")?.startsWith("application/json");
    const typed = response.status < 400 || json;
    if (!typed || (response.status >= 500 && response.status !== 503)) {
      bad.push({ seed: SEED, method, path: `${filled}?${query}`, text, status: response.status });
    }
    if (bad.length > 3) break;
  }
  expect(bad).toEqual([]);
  expect((await t.send("GET", "/healthz")).status).toBe(200);
}, 3_600_000);
