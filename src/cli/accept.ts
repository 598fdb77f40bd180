import { GYM } from "../compat/nemo-gym/instance.ts";
import { gymRollout } from "../compat/nemo-gym/run-request.ts";
import type { GymServers } from "../compat/nemo-gym/scorer.ts";
import type { Config } from "../config/settings.ts";
import { ServiceError } from "../errors.ts";
import type { Limits } from "../jobs/job.ts";
import { jsonWithTools } from "../lib/exact-tools.ts";
import type { Submission } from "../pipeline/parts.ts";
import { type EngineRoute, imageSchema, type RolloutRequest } from "../protocol/rollout.ts";
import { canonicalWith, shareTerms } from "../protocol/terms.ts";
import { goldenKind } from "../tasks/golden.ts";
import { mcpServersFor } from "../tasks/mcp-servers.ts";
import { taskKindNamed, taskKindOf } from "../tasks/registry.ts";
import { type SandboxPlan, usesSandbox } from "../tasks/sandbox-plan.ts";
import { gymServers, taskSettings } from "./task-settings.ts";

/** @param route where the rollout came through another API, how it reaches its engine */
export type Accept = (request: RolloutRequest, route?: EngineRoute) => Submission;

/**
 * Turns a checked request into a job: finds its task kind, checks the row, fills in limits and id.
 *
 * @param whyNone why there are no sandboxes, with driver=none
 * @throws ServiceError `unknown_task_kind`, `invalid_field`
 */
export function acceptWith(
  config: Config,
  checkCallback: (url: string) => void,
  whyNone = "it was started with --driver none",
): Accept {
  const settings = taskSettings(config);
  const servers = gymServers(config);
  // One after the other mostly asks for the same.
  let last: { request: RolloutRequest; route: EngineRoute | undefined; terms: TermsOfJob } | null;
  const termsFor = (request: RolloutRequest, route: EngineRoute | undefined) => {
    if (!last || last.route !== route || !shareTerms(last.request, request)) {
      last = { request, route, terms: termsOfJob(request, route, config) };
    }
    return last.terms;
  };
  return (asked, route) => {
    const request = ofGym(asked, servers);
    const { instance, agent, image, task_kind, golden, id } = request;
    const named = task_kind ? taskKindNamed(task_kind) : taskKindOf(instance.data_source);
    const kind = golden ? goldenKind(named, golden) : named;
    const parsed = kind.parse(instance);
    const plan = kind.sandboxes(parsed, settings);
    if (golden) kind.golden?.(parsed, golden);
    checkRowImage(plan.image);
    checkRowImage(plan.evaluationImage ?? null);
    checkMemory(plan, config);
    mcpServersFor(kind.name, instance, agent?.mcp_servers, settings);
    if (usesSandbox(plan) && config.driver === "none") {
      const message = `a ${kind.name} rollout needs a sandbox, and the server has none: ${whyNone}`;
      const mend = "start the server with Apptainer or bubblewrap; `rolloutd doctor` tells more";
      throw new ServiceError("invalid_field", message, { field: "instance", mend });
    }
    if (!image && !plan.image && plan.ownImage) {
      const { why, mend } = plan.ownImage;
      throw new ServiceError("invalid_field", why, { field: "instance", mend });
    }
    if (usesSandbox(plan) && !image && !plan.image && !config.image) {
      const mend =
        "set `image` in the rollout, or --image IMAGE (after `source .tools/env`, ROLLOUTD_IMAGE is the base image)";
      const message = `a ${kind.name} rollout needs an image, and the server has no default one`;
      throw new ServiceError("invalid_field", message, { field: "image", mend });
    }
    if (request.callback_url !== undefined) checkCallback(request.callback_url);
    const terms = termsFor(request, route);
    return {
      madeId: id === undefined,
      job: {
        id: id ?? Bun.randomUUIDv7(),
        numAttempts: request.num_attempts ?? config.num_attempts,
        evalFromRecord: plan.evaluation !== "agent",
        limits: terms.limits,
      },
      row: {
        bodySha256: Bun.SHA256.hash(terms.canonical(instance), "hex"),
        taskKind: kind.name,
        usesSandbox: plan.agent,
        scoredInFresh: plan.evaluation === "fresh",
        needsBackend: kind.needsBackend,
        image: image ?? plan.image,
        instance: jsonWithTools(instance),
        options: terms.options,
        ...terms.row,
      },
    };
  };
}

/** A row of NeMo Gym's as it is published becomes an instance of the kind that scores it. */
function ofGym(request: RolloutRequest, servers: GymServers): RolloutRequest {
  const { instance, agent } = request;
  if (instance.data_source !== GYM || instance.verifier !== undefined) return request;
  const { data_source: _source, ...row } = instance;
  const read = gymRollout(row, servers);
  if (read.agent === undefined) return { ...request, instance: read.instance };
  return { ...request, instance: read.instance, agent: { ...read.agent, ...agent } };
}

function checkRowImage(image: string | null): void {
  const problem = image === null ? undefined : imageSchema.safeParse(image).error?.issues[0];
  if (!problem) return;
  const message = `the row's image "${image}" ${problem.message}`;
  throw new ServiceError("invalid_field", message, { field: "instance" });
}

/** An instance that needs more memory than it can have would fail by its machine, not by its agent. */
function checkMemory({ limits }: SandboxPlan, { sandbox_memory_bytes: most }: Config): void {
  const asked = limits?.memoryBytes ?? 0;
  if (asked <= most) return;
  const message = `the row asks for ${asked} bytes of memory, and a sandbox here has ${most}`;
  const mend = "start the service with a larger --sandbox-memory-bytes";
  throw new ServiceError("invalid_field", message, { field: "instance", mend });
}

type TermsOfJob = {
  limits: Limits;
  options: string;
  row: ReturnType<typeof rowOptions>;
  canonical: ReturnType<typeof canonicalWith>;
};

/** What a job has of its request besides id and instance. */
function termsOfJob(
  request: RolloutRequest,
  route: EngineRoute | undefined,
  config: Config,
): TermsOfJob {
  const { id: _id, instance: _instance, ...terms } = request;
  const { sampling, agent, chat, image, tokens, golden, limits = {} } = terms;
  return {
    limits: {
      initMs: limits.init_ms ?? config.init_limit_ms,
      runMs: limits.run_ms ?? config.run_limit_ms,
      evalMs: limits.eval_ms ?? config.eval_limit_ms,
      totalMs: limits.total_ms ?? config.total_limit_ms,
      ...(limits.active_ms !== undefined && { activeMs: limits.active_ms }),
    },
    options: JSON.stringify({ sampling, agent, chat, image, tokens, golden, route }),
    row: rowOptions(request),
    canonical: canonicalWith(terms),
  };
}

/** What is the queue's business and not the worker's. */
function rowOptions({ labels, priority, lease_ms, callback_url }: RolloutRequest) {
  return {
    ...(labels === undefined ? {} : { labels }),
    ...(priority === undefined ? {} : { priority }),
    ...(lease_ms === undefined ? {} : { leaseMs: lease_ms }),
    ...(callback_url === undefined ? {} : { callbackUrl: callback_url }),
  };
}
