import { asRecord } from "./probe-call.ts";

/** What an engine says of itself. Units: requests, tokens; `kvUse` is a share, `preemptions` a total. */
export type EngineLoad = {
  running: number;
  waiting: number;
  /** Null where it does not say, as the others below. */
  kvUse: number | null;
  kvTokens: number | null;
  preemptions: number | null;
  /** Totals of prompt tokens that were looked up in its prefix cache, and found. */
  cacheQueries: number | null;
  cacheHits: number | null;
};

const RUNNING = ["num_requests_running", "num_running_reqs"];
const WAITING = ["num_requests_waiting", "num_queue_reqs"];
const KV_USE = ["kv_cache_usage_perc", "gpu_cache_usage_perc", "token_usage"];
const PREEMPTIONS = ["num_preemptions_total", "num_preemptions"];
const CACHE_QUERIES = ["prefix_cache_queries_total", "prefix_cache_queries"];
const CACHE_HITS = ["prefix_cache_hits_total", "prefix_cache_hits"];
const KV_TOKENS = ["max_total_num_tokens"];

/** Some exporters write `_` for the colon. */
const LINE = /^(?:vllm|sglang)[:_]([a-z_]+)(?:\{([^}]*)\})?\s+(\S+)/;

/**
 * Prometheus' text as vLLM and SGLang write it, summed over the ranks of an engine; null where it has no
 * load of theirs.
 */
export function readMetrics(text: string): EngineLoad | null {
  const values = new Map<string, number[]>();
  let kvTokens: number | null = null;
  for (const line of text.split("\n")) {
    const [, name, labels = "", value] = LINE.exec(line) ?? [];
    if (name === undefined || !Number.isFinite(Number(value))) continue;
    const known = values.get(name);
    if (known) known.push(Number(value));
    else values.set(name, [Number(value)]);
    if (name !== "cache_config_info") continue;
    const tokens = label(labels, "num_gpu_blocks") * label(labels, "block_size");
    if (tokens > 0) kvTokens = (kvTokens ?? 0) + tokens;
  }
  const first = (names: string[]) => names.map((name) => values.get(name)).find(Boolean);
  const sum = (names: string[]) => first(names)?.reduce((total, value) => total + value, 0) ?? null;
  const running = sum(RUNNING);
  if (running === null) return null;
  const uses = first(KV_USE);
  return {
    ...{ running, waiting: sum(WAITING) ?? 0, preemptions: sum(PREEMPTIONS) },
    kvUse: uses?.reduce((most, use) => Math.max(most, use)) ?? null,
    kvTokens: kvTokens ?? sum(KV_TOKENS),
    cacheQueries: sum(CACHE_QUERIES),
    cacheHits: sum(CACHE_HITS),
  };
}

/** SGLang's `/v1/loads` and `/get_load`: one entry for each rank. Null for another shape. */
export function readLoads(value: unknown): EngineLoad | null {
  const loads = Array.isArray(value) ? value : asRecord(value).loads;
  if (!Array.isArray(loads) || loads.length === 0) return null;
  const sum = (name: string): number | null => {
    const numbers = loads.map((load) => asRecord(load)[name]).filter((n) => typeof n === "number");
    return numbers.length === 0 ? null : numbers.reduce((total, number) => total + number, 0);
  };
  const waiting = sum("num_waiting_reqs") ?? 0;
  const all = sum("num_reqs");
  const running = sum("num_running_reqs") ?? (all === null ? null : Math.max(0, all - waiting));
  if (running === null) return null;
  const use = sum("token_usage");
  return {
    ...{ running, waiting, kvTokens: sum("max_total_num_tokens"), preemptions: null },
    ...{ cacheQueries: null, cacheHits: null },
    kvUse: use === null ? null : use / loads.length,
  };
}

function label(labels: string, name: string): number {
  return Number(new RegExp(`\\b${name}="(\\d+)"`).exec(labels)?.[1] ?? 0);
}
