import type { ToolName } from "../../agent/tool.ts";
import { ServiceError } from "../../errors.ts";
import { PostFailure, postJson, withRetries } from "../../verifiers/post-json.ts";
import type { Verdict } from "../../verifiers/verdict.ts";
import { requireAllowedUrl } from "../allowed-url.ts";
import type { TaskSettings } from "../settings.ts";
import type { EvalContext, TaskKind } from "../task-kind.ts";
import { aviaryAgent } from "./aviary-agent.ts";
import type { GymState } from "./gym-agent.ts";
import { gymnasiumAgent } from "./gymnasium-agent.ts";
import { type Cookies, ResourcesServer } from "./resources-server.ts";
import { type HttpInstance, parseHttpRow } from "./row.ts";
import { simpleAgent } from "./simple-agent.ts";

const SANDBOXED: readonly ToolName[] = [
  "execute_bash",
  "execute_ipython_cell",
  "str_replace_editor",
];

const AGENTS = { simple: simpleAgent, gymnasium: gymnasiumAgent, aviary: aviaryAgent };

/** Scored by a server: an external reward server, or a resources server of NeMo Gym with tools of its own. */
export const http: TaskKind<HttpInstance> = {
  name: "http",
  dataSources: ["http", "nemo_gym"],
  needsBackend: true,
  tools: ["finish"],
  parse: parseHttpRow,

  sandboxes(instance, settings) {
    serversOf(instance, settings);
    const agent = instance.agentTools.some((name) => SANDBOXED.includes(name));
    return { agent, evaluation: "none", image: settings.images.http ?? null };
  },

  init: async () => {},

  async run(instance, context) {
    const { recorder } = context;
    if (instance.verifier.protocol === "nemo_gym") {
      const server = resourcesServer(instance, context);
      const agent = AGENTS[instance.verifier.agent];
      const { stopReason, finalMessage, ...left } = await agent.run(instance, server, context);
      const state: GymState = {
        ...{ messages: [...recorder.answered], cookies: server.cookies },
        ...left,
      };
      const { turns } = recorder;
      return { stop_reason: stopReason, final_message: finalMessage, turns, state };
    }
    const { stopReason, finalMessage } = await context.agent({
      prompt: { messages: instance.messages },
      tools: instance.agentTools,
    });
    return { stop_reason: stopReason, final_message: finalMessage, turns: recorder.turns };
  },

  async evaluate(instance, outcome, context) {
    if (instance.verifier.protocol === "nemo_gym") {
      const state = outcome.state as GymState;
      const server = resourcesServer(instance, context, state.cookies);
      const agent = AGENTS[instance.verifier.agent];
      return verdictOf(await agent.reward(instance, server, state), server.url);
    }
    return await computeScore(instance, outcome.final_message, context);
  },
};

function resourcesServer(
  instance: HttpInstance,
  { settings, signal }: Pick<EvalContext, "settings" | "signal">,
  cookies: Cookies = {},
): ResourcesServer {
  const url = serversOf(instance, settings)[0] as string;
  const timeoutMs = instance.verifier.timeoutMs ?? settings.http.timeoutMs;
  return new ResourcesServer({ url, timeoutMs, signal }, cookies);
}

/** The address of the row, or those of the operator. @throws ServiceError `invalid_field` */
function serversOf({ verifier }: HttpInstance, { http: settings }: TaskSettings): string[] {
  if (verifier.url !== null) {
    const allowed = [...settings.allowedUrls, ...settings.rewardServers];
    return [requireAllowedUrl(verifier.url, allowed, "instance.verifier.url").href];
  }
  if (settings.rewardServers.length > 0) return settings.rewardServers;
  throw new ServiceError(
    "invalid_field",
    "the row names no verifier, and neither does the server",
    {
      field: "instance.verifier.url",
      mend: "name one, or start the server with --reward-servers URL",
    },
  );
}

/** As ProRL Agent asks its reward servers; another one is asked where one fails. */
async function computeScore(
  instance: HttpInstance,
  message: string | null,
  { settings, signal, jobId }: EvalContext,
): Promise<Verdict> {
  const servers = serversOf(instance, settings);
  const body = {
    solution_str: message ?? "",
    ground_truth: instance.truth,
    data_source: instance.dataSource,
    extra_info: instance.row.extra_info ?? null,
  };
  const timeoutMs = instance.verifier.timeoutMs ?? settings.http.timeoutMs;
  let next = Bun.hash.crc32(jobId);
  let url = "";
  try {
    const { json } = await withRetries(signal, () => {
      url = scoreAddress(servers[next++ % servers.length] as string);
      return postJson(url, body, { timeoutMs, signal });
    });
    return verdictOf(scoreOf(json), url);
  } catch (error) {
    if (!(error instanceof PostFailure)) throw error;
    throw new ServiceError("reward_server_failed", `the reward server at ${url}: ${error.message}`);
  }
}

function scoreAddress(server: string): string {
  const url = new URL(server);
  if (url.pathname === "/") url.pathname = "/compute_score";
  return url.href;
}

/** A number or a boolean, or a list that begins with one. */
function scoreOf(json: unknown): number {
  const { score } = (json ?? {}) as { score?: unknown };
  const first = Array.isArray(score) ? score[0] : score;
  if (typeof first === "number" || typeof first === "boolean") return Number(first);
  throw new PostFailure("its answer has no score", false);
}

/** @throws ServiceError `reward_out_of_range` */
function verdictOf(reward: number, url: string): Verdict {
  if (!(reward >= 0 && reward <= 1)) {
    const message = `${new URL(url).host} gave the reward ${reward}, and rewards are from 0 to 1`;
    throw new ServiceError("reward_out_of_range", message, {
      details: { reward },
      mend: "have the server scale its rewards to that range",
    });
  }
  return { reward, rule: "reward_server", reason: `${new URL(url).host} gave ${reward}.` };
}
