import type { McpAddress } from "../agent/mcp/mcp-server.ts";
import type { JudgeSettings } from "../verifiers/judge.ts";

/** Rules of the agent loop where a rollout names none. Null: the task kind's own, or no limit. */
export type AgentDefaults = {
  maxTurns: number | null;
  stuck: "off" | "normal" | "strict";
  maxIdleTurns: number | null;
  reminder: string | null;
  forcedFinish: boolean;
  maxSampledTokens: number | null;
  maxContextTokens: number | null;
};

/** What the operator has set for task kinds, as plain data: it crosses to the workers. */
export type TaskSettings = {
  /** Absolute paths of modules with the user's own task kinds. */
  modules: string[];
  /** Variables of the service that rows may ask for by their names. */
  envs: string[];
  /** Whether a task that asks for a network is refused, or runs without one. */
  network: "refuse" | "without";
  /** Image references by task kind, with `{field}` for what comes from the row. */
  images: Record<string, string>;
  agent: AgentDefaults;
  /** Compares free answers; null where there is none. */
  judge: JudgeSettings | null;
  /** Where the kind stem searches the web; null where it does not. */
  search: { url: string; apiKeyEnv: string | null; timeoutMs: number } | null;
  /** `rewardServers` are the operator's own; rows may name what lies below `allowedUrls`. */
  http: { rewardServers: string[]; allowedUrls: string[]; timeoutMs: number };
  /** The operator's tool servers by their names, and the kinds that have their tools without being asked. */
  mcp: Record<string, { address: McpAddress; taskKinds: string[] }>;
  /** Of hidden tests: time for all of one rollout's together, how many run at once, and memory of those. */
  tests: { totalMs: number; memoryBytes: number; atOnce: number };
};
