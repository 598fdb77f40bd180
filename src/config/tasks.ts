import { z } from "zod";
import { bytes, count, httpUrl, ms, path, setting } from "./setting.ts";

/** Task kinds, verifiers and tools. */
export const TASK_SETTINGS = {
  tests_total_ms: setting(ms, 300_000, "time for all hidden tests of a rollout of code together"),
  tests_at_once: setting(
    count,
    4,
    "hidden tests of one rollout of code that run beside each other",
  ),
  test_memory_bytes: setting(
    bytes,
    4 * 1024 ** 3,
    "address space of a process under a hidden test; those beside each other share it",
  ),
  judge_url: setting(
    httpUrl,
    undefined,
    "OpenAI-compatible server that compares free answers (URL with /v1)",
  ),
  judge_model: setting(z.string(), undefined, "the judge's model"),
  judge_api_key_env: setting(z.string(), undefined, "name of the variable that holds its key"),
  judge_ms: setting(ms, 120_000, "time limit of one call of the judge"),
  judge_max_tokens: setting(count, 1024, "tokens of one answer of the judge"),
  reward_servers: setting(
    z.string(),
    undefined,
    "external reward servers (URLs with commas between), as /compute_score of ProRL Agent",
  ),
  reward_server_ms: setting(ms, 300_000, "time limit of one call of a reward or resources server"),
  search_url: setting(
    httpUrl,
    undefined,
    "web search for the kind stem: POST {query, max_results} gives {results: [{title, url, content}]}, as Tavily's /search",
  ),
  search_api_key_env: setting(z.string(), undefined, "name of the variable that holds its key"),
  search_ms: setting(ms, 30_000, "time limit of one search"),
  task_urls: setting(
    z.string(),
    undefined,
    "addresses that rows may name for verifiers and tools, and batches for rows, with commas between; by default none",
  ),
  rows_dir: setting(
    path,
    undefined,
    "folder below which batches may read files of rows; none without it",
  ),
  tasks: setting(
    z.string(),
    undefined,
    "modules with task kinds of your own (TypeScript or JavaScript), with commas between",
  ),
  mcp_servers: setting(
    path,
    undefined,
    "JSON file of tool servers (MCP) that rollouts and rows may name; programs run outside of sandboxes",
  ),
  task_envs: setting(
    z.string(),
    undefined,
    "variables of the service that task folders may ask for by name, with commas between; sandboxes get their values",
  ),
  task_network: setting(
    z.enum(["refuse", "without"]),
    "refuse",
    "task folders that ask for a network: refuse them, or run them without one",
  ),
  task_images: setting(
    z.string(),
    undefined,
    "images by task kind, KIND=REFERENCE with commas between; {field} comes from the row",
  ),
} as const;
