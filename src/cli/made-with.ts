import { type Config, SETTINGS, type SettingName } from "../config/settings.ts";
import { UsageError } from "./flags.ts";

/**
 * What made a result, besides its row: the terms of the run, by the names of their flags or settings. What a run leaves to
 * a default is left out.
 */
export type MadeWith = Record<string, unknown>;

/** Settings of a run's own service that change what a rollout is, or what it earns. */
const SHAPING: readonly SettingName[] = [
  ...(["image", "model_dir", "engine", "driver", "min_isolation"] as const),
  ...(["agent_max_turns", "agent_stuck", "agent_max_idle_turns", "agent_reminder"] as const),
  ...(["agent_forced_finish", "agent_max_sampled_tokens", "agent_max_context_tokens"] as const),
  ...(["init_limit_ms", "run_limit_ms", "eval_limit_ms", "max_outcome_bytes"] as const),
  ...(["tests_total_ms", "test_memory_bytes", "judge_model", "judge_max_tokens"] as const),
  ...(["tasks", "task_images", "sandbox_memory_bytes", "sandbox_processes"] as const),
  ...(["sandbox_tmpfs_bytes", "sandbox_disk_bytes", "sandbox_file_bytes"] as const),
];

/** @param config of the run's own service; null where the service is another's, whose settings stay unknown */
export function madeWith(terms: MadeWith, config: Config | null): MadeWith {
  const given = config === null ? [] : SHAPING.map((name) => [name, config[name]] as const);
  const set = given.filter(([name, value]) => value !== SETTINGS[name].fallback);
  return JSON.parse(JSON.stringify({ ...Object.fromEntries(set), ...terms }));
}

/** Where they come from, which is for people: a file of rows may be moved, and a server that is asked has its model. */
const UNCOMPARED = ["rows"];

/**
 * Refuses to mix results that were made otherwise.
 * @param where in the file the result is
 * @throws UsageError, naming what differs and what to do
 */
export function requireSame(past: MadeWith, now: MadeWith, where: string): void {
  for (const name of new Set([...Object.keys(past), ...Object.keys(now)])) {
    if (UNCOMPARED.includes(name) || Bun.deepEquals(past[name], now[name])) continue;
    // A service may have had no engine yet, or has none now.
    if (name === "model" && (past.model === undefined || now.model === undefined)) continue;
    const mend = `run with the same ${name} as before, or write to another file with --out`;
    const was = `${where} was made with ${shown(name, past)}`;
    throw new UsageError(`${was}, and this run has ${shown(name, now)}; ${mend}`);
  }
}

function shown(name: string, terms: MadeWith): string {
  return terms[name] === undefined ? `no ${name}` : `${name} ${JSON.stringify(terms[name])}`;
}
