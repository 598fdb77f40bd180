import { z } from "zod";
import { flag, ms, setting } from "./setting.ts";

/** The APIs of others. */
export const COMPAT_SETTINGS = {
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
  gym_servers: setting(
    z.string(),
    undefined,
    "NeMo Gym's resources servers, NAME=URL with commas between; they score the rows that name them, *=URL all others",
  ),
} as const;
