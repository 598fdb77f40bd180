import type { z } from "zod";
import { AGENT_SETTINGS } from "./agent.ts";
import { API_SETTINGS } from "./api.ts";
import { BACKEND_SETTINGS } from "./backends.ts";
import { COMPAT_SETTINGS } from "./compat.ts";
import { DATA_SETTINGS } from "./data.ts";
import { PIPELINE_SETTINGS } from "./pipeline.ts";
import { SANDBOX_SETTINGS } from "./sandboxes.ts";
import { TASK_SETTINGS } from "./tasks.ts";

/** All settings by what they are about, as the help shows them. */
export const SECTIONS = {
  Requests: API_SETTINGS,
  "Data folder": DATA_SETTINGS,
  "Images and sandboxes": SANDBOX_SETTINGS,
  Inference: BACKEND_SETTINGS,
  Stages: PIPELINE_SETTINGS,
  Agents: AGENT_SETTINGS,
  Tasks: TASK_SETTINGS,
  "Others' APIs": COMPAT_SETTINGS,
};

/**
 * Every setting of the service: schema, default, and what it means. The key in snake_case is its name in the
 * configuration file; `--data-dir` and `ROLLOUTD_DATA_DIR` are the flag and the variable of `data_dir`.
 */
export const SETTINGS = {
  ...API_SETTINGS,
  ...DATA_SETTINGS,
  ...SANDBOX_SETTINGS,
  ...BACKEND_SETTINGS,
  ...PIPELINE_SETTINGS,
  ...AGENT_SETTINGS,
  ...TASK_SETTINGS,
  ...COMPAT_SETTINGS,
} as const;

export type SettingName = keyof typeof SETTINGS;
export type Config = {
  [K in SettingName]: (typeof SETTINGS)[K]["fallback"] extends undefined
    ? z.output<(typeof SETTINGS)[K]["schema"]> | undefined
    : z.output<(typeof SETTINGS)[K]["schema"]>;
};

export const flagOf = (name: string) => `--${name.replaceAll("_", "-")}`;
export const variableOf = (name: string) => `ROLLOUTD_${name.toUpperCase()}`;
