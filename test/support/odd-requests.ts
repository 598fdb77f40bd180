import { pack } from "msgpackr";
import { trajectoryToProtobuf } from "../../src/protocol/trajectory-protobuf.ts";
import { OPERATIONS } from "../../src/server/openapi/operations.ts";
import { exampleTrajectory } from "./trajectories.ts";

/** As a server gets it. Of `GET` and `DELETE` there is no body. */
export type OddRequest = {
  /** The route that it is meant for, with its parameters' names. */
  route: string;
  method: string;
  path: string;
  headers: Record<string, string>;
  body: string | Uint8Array | null;
};

const ODD = [
  ...[null, true, 0, -1, 1.5, 1e308, 2 ** 53, "", "x", "\u0000", "../../etc/passwd", "%2f", "é😀"],
  ...[[], {}, [[]], "x".repeat(5000), "{", "a\nb", "step:1", "1"],
];

type Body = { body: OddRequest["body"]; type?: string; coding?: string };
const NO_BODY: Body = { body: null };

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
  /** The same with one field changed, somewhere in it. */
  const nudge = (value: unknown): unknown => {
    if (typeof value !== "object" || value === null || below(4) === 0) return pick(ODD);
    const keys = Object.keys(value);
    if (keys.length === 0) return pick(ODD);
    const key = pick(keys);
    const changed = nudge((value as Record<string, unknown>)[key]);
    if (!Array.isArray(value)) return { ...value, [key]: changed };
    return value.map((inner, index) => (String(index) === key ? changed : inner));
  };
  /** The same under another id, of a few, so that some are known. */
  const renamed = (value: unknown): unknown =>
    typeof value === "object" && value !== null && "id" in value
      ? { ...value, id: `f${below(200)}` }
      : value;
  return { below, pick, mutate, nudge, renamed };
}

const EXAMPLE = {
  id: "f1",
  instance: { data_source: "echo", reward: 0.5, run_ms: 1 },
  sampling: { temperature: 1, stop: ["x"], seed: 3 },
  agent: { max_turns: 3 },
  limits: { init_ms: 500, total_ms: 900 },
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
const TYPES = [
  ...[
    "application/json",
    "application/json; charset=utf-16",
    "APPLICATION/JSON",
    "text/x",
    ";",
    "",
  ],
  ...["application/msgpack", "application/x-protobuf", "multipart/form-data; boundary=x", "a/b"],
];
const CODINGS = ["gzip", "zstd", "constructor", "__proto__;q=1", "gzip;q=0,*;q=1", "identity;q=0"];

/** Bodies for routes whose description has none. */
const EXAMPLES: Record<string, unknown> = {
  "POST /v1/batches": {
    ...{ id: "f1", instances: [EXAMPLE.instance], num_samples: 2, goal: { groups: 1 } },
    ...{ open: true, series: "s", max_rollouts: 9, unfinished: "keep" },
  },
  "POST /v1/batches/{id}/instances": { instances: [EXAMPLE.instance], at: 0, close: true },
  "POST /v1/rollouts/{id}/rescore": { id: "r1" },
};

const ROUTES = [
  ...OPERATIONS.map(({ route, example }) => ({ route, example: example ?? EXAMPLES[route] })),
  ...COMPAT.map(([route, example]) => ({ route, example })),
];

/** Ids that requests before may have made. */
const KNOWN = Array.from({ length: 6 }, (_, index) => `f${index * 7}`);
const NAMES = ["after", "limit", "order", "state", "label", "kind", "wait_ms", "dry_run", "x"];

/** Draws requests to every route, with bodies that are right, wrong, or none at all: the same for the same seed. */
export function oddRequests(seed: number): () => OddRequest {
  const { below, pick, mutate, nudge, renamed } = drawing(seed);
  const record = trajectoryToProtobuf(exampleTrajectory());
  /** The same with bytes changed, cut out or doubled. */
  const damaged = (bytes: Uint8Array): Uint8Array => {
    const [from, to] = [below(bytes.length + 1), below(bytes.length + 1)];
    if (below(3) === 0) return Buffer.concat([bytes.subarray(0, from), bytes.subarray(to)]);
    return bytes.map((byte) => (below(40) === 0 ? below(256) : byte));
  };
  /** JSON, or in a form that is none: packed, compressed (to a hundredth and less), damaged, or drawn. */
  const encoded = (value: unknown, text: string): Body => {
    const form = below(30);
    const bytes = Buffer.from(text);
    const bomb = Buffer.alloc(below(4) ? 0 : 200_000, " ");
    const long = Buffer.concat([bytes, bomb]);
    if (form === 0) return { body: Bun.gzipSync(long), coding: "gzip" };
    if (form === 1) return { body: Bun.zstdCompressSync(long), coding: "zstd" };
    if (form === 2) return { body: pack(value), type: "application/msgpack" };
    if (form === 3) return { body: damaged(pack(value)), type: "application/msgpack" };
    if (form === 4) return { body: record, type: "application/x-protobuf" };
    if (form === 5) return { body: damaged(record), type: "application/x-protobuf" };
    if (form === 6) return { body: damaged(bytes), type: "application/json" };
    if (form === 7) return { body: Uint8Array.from({ length: below(300) }, () => below(256)) };
    return { body: text, type: "application/json" };
  };
  return () => {
    const { route, example } = pick(ROUTES);
    const [method = "", path = ""] = route.split(" ");
    const id = pick([...KNOWN, "f1", "f2", "", "%00", "..%2f", "a b", String(pick(ODD))]);
    const filled = path.replace(/\{\w+\}/g, encodeURIComponent(id));
    const query = new URLSearchParams();
    while (below(method === "POST" ? 6 : 2) === 0)
      query.set(pick(NAMES), String(pick([...ODD, 0, 5, "finished", "active"])));
    // Otherwise the requests would wait for one another.
    if (query.has("wait_ms")) query.set("wait_ms", String(pick([0, 1, "x", -1])));
    const many = { rollouts: [EXAMPLE, { ...EXAMPLE, id: `m${below(1000)}` }] };
    const whole = pick([example, example, example, pick([EXAMPLE, many]), pick(ODD)]);
    const changed = pick([renamed, (it: unknown) => nudge(renamed(it)), mutate])(whole);
    const text = below(8) ? JSON.stringify(changed ?? null) : String(pick(ODD));
    const { body, type, coding } = method === "POST" ? encoded(changed, text) : NO_BODY;
    const headers: Record<string, string> = {
      ...{ accept: pick(ACCEPTS), "accept-encoding": pick(CODINGS) },
      ...(below(4)
        ? {}
        : { "content-type": pick(TYPES), "last-event-id": pick(["1", "x", "1.2"]) }),
      ...(below(8) ? {} : { "content-encoding": pick(CODINGS) }),
      // Mostly said as it is.
      ...(type && below(4) ? { "content-type": type } : {}),
      ...(coding && below(4) ? { "content-encoding": coding } : {}),
    };
    return { route, method, path: `${filled}?${query}`, headers, body };
  };
}

/** The status of an answer that is a bug's; null where the request was answered, or refused with a typed error. */
export function bugOf({ status, headers }: { status: number; headers: Headers }): number | null {
  const typed = status < 400 || headers.get("content-type")?.startsWith("application/json");
  return typed && status !== 500 ? null : status;
}
