import type { Config } from "../config/settings.ts";
import type { SchedulerSettings } from "../pipeline/parts.ts";

/** What the scheduler is given of the settings. */
export function schedulerSettings(config: Config): SchedulerSettings {
  return {
    pools: {
      init: { threads: config.init_threads, slots: config.init_slots },
      run: { threads: config.run_threads, slots: config.run_slots },
      eval: { threads: config.eval_threads, slots: config.eval_slots },
    },
    evalSandboxes: config.eval_sandboxes,
    startsAtOnce: config.starts_at_once,
    imagesAtOnce: config.images_at_once,
    maxSandboxesAhead: config.max_sandboxes_ahead,
    warmSandboxes: config.warm_sandboxes,
    maxQueuedJobs: config.max_queued_jobs,
    maxPausedAlive: config.max_paused_alive,
    carryLimitMs: config.carry_limit_ms,
    cancelGraceMs: config.cancel_grace_ms,
    maxCrashes: config.max_crashes,
    stallMs: config.worker_stall_ms,
  };
}
