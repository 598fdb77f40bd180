import { resolve } from "node:path";
import type { Config } from "../config/settings.ts";
import { ServiceError } from "../errors.ts";
import type { TaskSettings } from "../tasks/settings.ts";
import { mcpSettings } from "./mcp-settings.ts";

/** @throws ServiceError `invalid_field` */
export function taskSettings(config: Config): TaskSettings {
  return {
    modules: listed(config.tasks ?? "").map((path) => resolve(path)),
    envs: listed(config.task_envs ?? ""),
    network: config.task_network,
    images: keyedTexts("task_images", config.task_images ?? ""),
    tests: {
      totalMs: config.tests_total_ms,
      memoryBytes: config.test_memory_bytes,
      atOnce: config.tests_at_once,
    },
    judge: judgeSettings(config),
    search:
      config.search_url === undefined
        ? null
        : {
            url: config.search_url,
            apiKeyEnv: config.search_api_key_env ?? null,
            timeoutMs: config.search_ms,
          },
    mcp: mcpSettings(config.mcp_servers),
    http: {
      rewardServers: urls("reward_servers", config.reward_servers ?? ""),
      allowedUrls: [
        ...urls("task_urls", config.task_urls ?? ""),
        ...Object.values(gymServers(config)),
      ],
      timeoutMs: config.reward_server_ms,
    },
    agent: {
      maxTurns: config.agent_max_turns ?? null,
      stuck: config.agent_stuck,
      maxIdleTurns: config.agent_max_idle_turns ?? null,
      reminder: config.agent_reminder ?? null,
      forcedFinish: config.agent_forced_finish,
      maxSampledTokens: config.agent_max_sampled_tokens ?? null,
      maxContextTokens: config.agent_max_context_tokens ?? null,
    },
  };
}

/** Resources servers of NeMo Gym by name. @throws ServiceError `invalid_field` */
export function gymServers(config: Config): Record<string, string> {
  const servers = keyedTexts("gym_servers", config.gym_servers ?? "");
  for (const url of Object.values(servers)) urls("gym_servers", url);
  return servers;
}

function judgeSettings(config: Config): TaskSettings["judge"] {
  const { judge_url: url, judge_model: model } = config;
  if (url === undefined) return null;
  if (model === undefined) {
    const message = "judge_url is set, and judge_model is not";
    const mend = "name the judge's model with --judge-model";
    throw new ServiceError("invalid_field", message, { field: "judge_model", mend });
  }
  const apiKeyEnv = config.judge_api_key_env ?? null;
  return { url, model, apiKeyEnv, timeoutMs: config.judge_ms, maxTokens: config.judge_max_tokens };
}

function urls(field: string, text: string): string[] {
  return listed(text).map((url) => {
    if (URL.canParse(url) && /^https?:$/.test(new URL(url).protocol)) return url;
    const message = `${field}: "${url}" is no http or https URL`;
    throw new ServiceError("invalid_field", message, { field });
  });
}

function listed(text: string): string[] {
  return text.split(",").flatMap((part) => part.trim() || []);
}

/** `a=x,b=y` as an object. */
function keyedTexts(field: string, text: string): Record<string, string> {
  const entries = listed(text).map((part): [string, string] => {
    const at = part.indexOf("=");
    if (at > 0) return [part.slice(0, at).trim(), part.slice(at + 1).trim()];
    const mend = "write KIND=VALUE, with commas between several";
    throw new ServiceError("invalid_field", `${field}: "${part}" has no =`, { field, mend });
  });
  return Object.fromEntries(entries);
}
