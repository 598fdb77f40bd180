import { availableParallelism } from "node:os";
import { resolve as resolvePath } from "node:path";
import { z } from "zod";
import { ServiceError } from "./errors.ts";

const cores = availableParallelism();
/** A number, or its text: flags and variables have nothing else. */
const whole = (min: number, max = Number.MAX_SAFE_INTEGER) =>
  z.preprocess(
    (value) => (typeof value === "string" && value.trim() !== "" ? Number(value) : value),
    z.int().min(min).max(max),
  );
const count = whole(1);
const bytes = whole(1);
const ms = whole(1);
const path = z.string().min(1);
/** Absolute, because programs that run in other folders get what lies below it. */
const folder = path.overwrite((given) => resolvePath(given));
const networks = z
  .string()
  .regex(
    /^(loopback|private|public)(,(loopback|private|public))*$/,
    "must be of loopback,private,public",
  );
const flag = z.union([
  z.boolean(),
  z.stringbool({ truthy: ["true", "1", "yes"], falsy: ["false", "0", "no"] }),
]);

/**
 * Every setting of the service: schema, default, and what it means. The key in snake_case is its name in the
 * configuration file; `--data-dir` and `ROLLOUTD_DATA_DIR` are the flag and the variable of `data_dir`.
 */
export const SETTINGS = {
  host: setting(z.string().min(1), "127.0.0.1", "address to listen on"),
  port: setting(whole(0, 65_535), 8006, "TCP port; 0 takes a free one"),
  socket: setting(path, undefined, "path of the Unix socket; by default rolloutd.sock in data_dir"),
  token_file: setting(
    path,
    undefined,
    "file of bearer tokens for the TCP port, 0600, one a line (TOKEN or NAME:TOKEN); read again when it changes",
  ),
  allow_anonymous: setting(
    flag,
    false,
    "serve an address that others reach without tokens: for clients that can't send one, in a network of one's own",
  ),
  tls_cert: setting(path, undefined, "certificate (PEM) for TLS on the TCP port, with tls_key"),
  tls_key: setting(path, undefined, "private key (PEM) of tls_cert"),
  data_dir: setting(
    folder,
    `/var/tmp/rolloutd-${process.getuid?.() ?? 0}`,
    "folder of the database and the sandboxes, on a local disk",
  ),
  image: setting(path, undefined, "image for rollouts that name none (see `rolloutd images`)"),
  image_cache: setting(
    folder,
    `/var/tmp/rolloutd-images-${process.getuid?.() ?? 0}`,
    "folder of unpacked images, shared by the services of a node, on a local disk",
  ),
  image_cache_bytes: setting(bytes, 100 * 1024 ** 3, "size above which unused images are removed"),
  image_mount_bytes: setting(
    bytes,
    undefined,
    "size above which a SIF is mounted and not unpacked (slow); by default image_cache_bytes where the node can mount",
  ),
  apptainer: setting(path, undefined, "the Apptainer or Singularity program; by default on PATH"),
  bwrap: setting(path, undefined, "the bubblewrap program; by default on PATH"),
  driver: setting(
    z.enum(["apptainer", "bubblewrap", "host"]),
    "apptainer",
    "how sandboxes are made",
  ),
  min_isolation: setting(
    z.enum(["A", "B"]),
    "B",
    "A refuses sandboxes where the node gives no network namespace; with B they have no IP sockets",
  ),
  allow_host_driver: setting(flag, false, "permit driver=host, which isolates nothing: tests only"),
  backend: setting(z.string(), undefined, "an inference server to start with (URL with /v1)"),
  model: setting(z.string(), undefined, "the model's name on that server, if it has several"),
  model_dir: setting(path, undefined, "its model's Hugging Face folder: token ids instead of text"),
  api_key_env: setting(z.string(), undefined, "name of the variable that holds that server's key"),
  engine: setting(
    z.enum(["auto", "vllm", "sglang", "prorl", "openai", "text"]),
    "auto",
    "that server's kind, where it is not to be found out; text leaves token ids aside",
  ),
  backend_key_envs: setting(
    z.string().regex(/^\w+(,\w+)*$/, "must be names of variables, with commas between them"),
    undefined,
    "variables that a request to add a backend may name as its key; none besides api_key_env by default",
  ),
  backend_networks: setting(
    networks,
    "loopback,private,public",
    "where inference servers may be, when they are added: any of loopback, private, public",
  ),
  balancing: setting(
    z.enum(["least-work", "min-heap", "round-robin", "static", "consistent-hash"]),
    "least-work",
    "which backend a rollout goes to; all but least-work are there for comparison",
  ),
  balancing_moves: setting(
    flag,
    true,
    "a rollout may go on, between turns, on a backend with so much less context to read that computing its own anew pays",
  ),
  backend_turns: setting(count, 1_024, "calls of one backend at once; more wait for their turn"),
  load_poll_ms: setting(ms, 5_000, "between two looks at the load and the memory of an engine"),
  backend_wait_ms: setting(ms, 300_000, "how long a call waits while no backend works"),
  turn_retries: setting(whole(0), 3, "times that a call is tried again when its engine fails"),
  backend_failures: setting(count, 5, "failed calls in a row that take a backend out"),
  backend_eject_ms: setting(ms, 1_000, "how long at first; twice as long each further time"),
  backend_max_eject_ms: setting(ms, 30_000, "how long a backend is out between two probes at most"),
  init_slots: setting(count, 16 * cores, "jobs in INIT at once"),
  run_slots: setting(count, 64, "jobs in RUN at once"),
  eval_slots: setting(count, 16 * cores, "jobs in EVAL at once"),
  init_threads: setting(count, 1, "worker threads of INIT"),
  run_threads: setting(count, Math.min(8, Math.ceil(cores / 4)), "worker threads of RUN"),
  eval_threads: setting(count, Math.min(4, Math.ceil(cores / 4)), "worker threads of EVAL"),
  starts_at_once: setting(
    count,
    2 * cores,
    "sandboxes that start or are prepared at once, per INIT thread",
  ),
  images_at_once: setting(
    count,
    Math.max(2, cores),
    "images that are pulled or unpacked at once; jobs of other images go on meanwhile",
  ),
  max_sandboxes_ahead: setting(count, 16, "sandboxes that are in INIT or wait for RUN"),
  max_queued_jobs: setting(count, 1_000_000, "unfinished jobs; more are refused with 429"),
  max_paused_alive: setting(
    z.int().min(0),
    32,
    "rollouts that wait in their sandboxes for the next batch; of further ones the record is kept",
  ),
  carry_limit_ms: setting(
    ms,
    3_600_000,
    "how long what a batch left unfinished is kept for the next one",
  ),
  disk_floor_bytes: setting(
    bytes,
    256 * 1024 ** 2,
    "free space below which new rollouts are refused with 507",
  ),
  disk_ballast_bytes: setting(
    bytes,
    16 * 1024 ** 2,
    "file that is given up on a full disk, so that running rollouts can still end",
  ),
  retention_ms: setting(ms, 30 * 86_400_000, "how long a finished rollout is kept"),
  retention_bytes: setting(
    bytes,
    64 * 1024 ** 3,
    "size of the database above which the oldest finished rollouts go",
  ),
  recover: setting(flag, false, "set a damaged database aside and begin an empty one"),
  worker_stall_ms: setting(ms, 60_000, "silence after which a worker thread is replaced"),
  max_waiting: setting(
    count,
    20_000,
    "requests that wait for a rollout; more are refused with 429",
  ),
  max_requests: setting(count, 30_000, "requests that are open at once; more are refused with 429"),
  max_streams: setting(count, 256, "streams of events; more are refused with 429"),
  max_body_bytes: setting(bytes, 64 * 1024 * 1024, "size of a request's body"),
  warm_sandboxes: setting(
    whole(0),
    Math.min(4, cores),
    "unused sandboxes kept ready for images in demand; 0 keeps none",
  ),
  init_limit_ms: setting(ms, 120_000, "INIT's time limit where a rollout names none"),
  run_limit_ms: setting(ms, 1_800_000, "RUN's time limit where a rollout names none"),
  eval_limit_ms: setting(ms, 600_000, "EVAL's time limit where a rollout names none"),
  total_limit_ms: setting(ms, 86_400_000, "limit from submission to end, queues included"),
  cancel_grace_ms: setting(ms, 5_000, "time to confirm an end before the sandbox is killed"),
  drain_ms: setting(ms, 10_000, "time for running jobs to end by themselves at SIGTERM"),
  num_attempts: setting(
    whole(1, 20),
    3,
    "attempts of a rollout that fails for reasons not its own, where it names no number",
  ),
  callback_secret_file: setting(
    path,
    undefined,
    "file of the secret that signs callbacks, 0600 (or ROLLOUTD_CALLBACK_SECRET); none without it",
  ),
  callback_networks: setting(
    networks,
    "loopback,private",
    "where callbacks may go: any of loopback, private, public",
  ),
  max_crashes: setting(count, 2, "restarts of the service that an active job survives"),
  engine_stall_ms: setting(
    whole(0),
    0,
    "longest silence within a reply, which is then streamed; 0 does not stream",
  ),
  engine_call_ms: setting(ms, 600_000, "time limit of one call of a model"),
  max_reply_bytes: setting(bytes, 16 * 1024 * 1024, "size of an inference server's reply"),
  max_outcome_bytes: setting(bytes, 32 * 1024 * 1024, "size of what RUN hands over to EVAL"),
  agent_max_turns: setting(count, undefined, "turns of an agent; by default the task kind's own"),
  agent_stuck: setting(
    z.enum(["off", "normal", "strict"]),
    "normal",
    "how little repetition ends a rollout, by the numbers of OpenHands",
  ),
  agent_max_idle_turns: setting(
    count,
    undefined,
    "messages in a row without a tool call that end a rollout; by default only repeated ones do",
  ),
  agent_reminder: setting(z.string(), undefined, "what a message without a tool call is told"),
  agent_forced_finish: setting(flag, false, "tell the model when it has its last turn"),
  agent_max_sampled_tokens: setting(count, undefined, "tokens that a rollout may sample in total"),
  agent_max_context_tokens: setting(count, undefined, "tokens that a conversation may have"),
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
    z.url({ protocol: /^https?$/ }),
    undefined,
    "OpenAI-compatible server that compares free answers (URL with /v1)",
  ),
  judge_model: setting(z.string(), undefined, "the judge's model"),
  judge_api_key_env: setting(z.string(), undefined, "name of the variable that holds its key"),
  judge_ms: setting(ms, 120_000, "time limit of one call of the judge"),
  judge_max_tokens: setting(count, 1024, "tokens of one answer of the judge"),
  search_url: setting(
    z.url({ protocol: /^https?$/ }),
    undefined,
    "web search for the kind stem: POST {query, max_results} gives {results: [{title, url, content}]}, as Tavily's /search",
  ),
  search_api_key_env: setting(z.string(), undefined, "name of the variable that holds its key"),
  search_ms: setting(ms, 30_000, "time limit of one search"),
  reward_servers: setting(
    z.string(),
    undefined,
    "external reward servers (URLs with commas between), as /compute_score of ProRL Agent",
  ),
  reward_server_ms: setting(ms, 300_000, "time limit of one call of a reward or resources server"),
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
  task_images: setting(
    z.string(),
    undefined,
    "images by task kind, KIND=REFERENCE with commas between; {field} comes from the row",
  ),
  sandbox_writable: setting(
    z.enum(["tmpfs", "overlay"]),
    "tmpfs",
    "writable layer: RAM of a bounded size, or a folder in data_dir",
  ),
  sandbox_start_ms: setting(ms, 60_000, "time limit of one sandbox start, attempts included"),
  sandbox_start_attempts: setting(count, 3, "attempts of a start that fails for a passing reason"),
  sandbox_processes: setting(count, 512, "processes in one sandbox"),
  sandbox_open_files: setting(count, 4096, "open files of one process in a sandbox"),
  sandbox_file_bytes: setting(bytes, 2_000_000_000, "size of one file in a sandbox"),
  sandbox_tmpfs_bytes: setting(
    bytes,
    1024 ** 3,
    "size of a sandbox's RAM layer, /tmp and /dev/shm",
  ),
  sandbox_memory_bytes: setting(bytes, 4 * 1024 ** 3, "memory of a sandbox's processes together"),
  sandbox_disk_bytes: setting(bytes, 16 * 1024 ** 3, "what a sandbox may write to the disk"),
  prorl_timeout_ms: setting(
    ms,
    300_000,
    "ProRL's API: the work of one rollout in its three stages together, queues left out",
  ),
  prorl_input_ids: setting(
    flag,
    true,
    "ProRL's API: each assistant message carries its whole prompt, which makes results quadratic",
  ),
  compat_adopt_ms: setting(
    ms,
    60_000,
    "ProRL's and NeMo Gym's API: how long a rollout that lost its client waits for it to come back",
  ),
  gym_status_mode: setting(
    z.enum(["collector", "rl"]),
    "collector",
    "NeMo Gym's API: answer failures of the infrastructure with 200 (its command line) or 503 (NeMo RL)",
  ),
  log_level: setting(z.enum(["info", "warn", "error", "silent"]), "info", "what is logged"),
} as const;

type Setting<S extends z.ZodType, D> = { schema: S; fallback: D; doc: string };

function setting<S extends z.ZodType, D extends z.output<S> | undefined>(
  schema: S,
  fallback: D,
  doc: string,
): Setting<S, D> {
  return { schema, fallback, doc };
}

export type SettingName = keyof typeof SETTINGS;
export type Config = {
  [K in SettingName]: (typeof SETTINGS)[K]["fallback"] extends undefined
    ? z.output<(typeof SETTINGS)[K]["schema"]> | undefined
    : z.output<(typeof SETTINGS)[K]["schema"]>;
};

/** Where a value came from, for the error that refuses it. */
type Source = { describe(name: string): string; values: Record<string, unknown> };

export const flagOf = (name: string) => `--${name.replaceAll("_", "-")}`;
export const variableOf = (name: string) => `ROLLOUTD_${name.toUpperCase()}`;

type Inputs = {
  /** Parsed configuration file. */
  file?: Record<string, unknown> | undefined;
  env: Record<string, string | undefined>;
  /** By setting name. */
  flags: Record<string, unknown>;
};

/** File < environment < flags. @throws ServiceError `invalid_field`, `unknown_field` */
export function loadConfig({ file = {}, env, flags }: Inputs): Config {
  refuseUnknown(file);
  const names = Object.keys(SETTINGS) as SettingName[];
  const fromEnv = Object.fromEntries(names.map((name) => [name, env[variableOf(name)]]));
  const sources: Source[] = [
    { describe: flagOf, values: flags },
    { describe: variableOf, values: fromEnv },
    { describe: (name) => `${name} in the configuration file`, values: file },
  ];
  const config: Record<string, unknown> = {};
  for (const name of names) config[name] = resolve(name, sources);
  return config as Config;
}

function resolve(name: SettingName, sources: Source[]): unknown {
  const { schema, fallback } = SETTINGS[name];
  for (const { describe, values } of sources) {
    if (values[name] === undefined) continue;
    const parsed = schema.safeParse(values[name]);
    if (parsed.success) return parsed.data;
    const why = parsed.error.issues[0]?.message ?? "invalid";
    throw new ServiceError("invalid_field", `${describe(name)}: ${why}`, { field: name });
  }
  return fallback;
}

function refuseUnknown(file: Record<string, unknown>): void {
  for (const name of Object.keys(file)) {
    if (Object.hasOwn(SETTINGS, name)) continue;
    throw new ServiceError("unknown_field", `the configuration file has an unknown key: ${name}`, {
      field: name,
      mend: "`rolloutd serve --help` lists the settings",
    });
  }
}
