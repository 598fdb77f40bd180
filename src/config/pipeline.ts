import { bytes, cores, count, ms, setting, whole } from "./setting.ts";

/** Slots, threads and time limits of the stages. */
export const PIPELINE_SETTINGS = {
  init_slots: setting(count, 16 * cores, "jobs in INIT at once"),
  run_slots: setting(
    count,
    64,
    "jobs in RUN at once; best twice as many rollouts as the engines have memory for in the end",
  ),
  eval_slots: setting(count, 16 * cores, "jobs in EVAL at once"),
  eval_sandboxes: setting(
    count,
    2 * cores,
    "of these, jobs whose EVAL runs submitted work in a sandbox; the others wait without a time limit",
  ),
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
    whole(0),
    32,
    "rollouts that wait in their sandboxes for the next batch; of further ones the record is kept",
  ),
  carry_limit_ms: setting(
    ms,
    3_600_000,
    "how long what a batch left unfinished is kept for the next one",
  ),
  worker_stall_ms: setting(ms, 60_000, "silence after which a worker thread is replaced"),
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
  max_crashes: setting(
    count,
    2,
    "deaths of the service or a thread that its jobs survive as they are; then they go on in small groups, and alone",
  ),
  max_outcome_bytes: setting(bytes, 32 * 1024 * 1024, "size of what RUN hands over to EVAL"),
} as const;
