import { type ErrorBody, ServiceError } from "../../errors.ts";
import type { Stage } from "../../jobs/job.ts";
import type { RolloutView } from "../../protocol/view.ts";
import type { Trajectory } from "../../trajectory/record.ts";
import { type MessageTokens, messageTokens } from "./message-tokens.ts";
import { type ProrlMessages, prorlMessages } from "./messages.ts";
import type { ProcessRequest } from "./process-request.ts";

/** A rollout counts as solved above this. Source: ProRL-Agent-Server's verifiers. */
const RESOLVED_ABOVE = 0.99;

/**
 * What `/process` answers. Each key is there each time, whatever happened: trainers read some of them without
 * looking whether they are there, and one that is missing ends their step.
 */
export type ProrlResult = {
  instance_id: string | number | null;
  trajectory_id: string | number | null;
  success: boolean;
  resolved: boolean;
  finish: boolean;
  end_properly: boolean;
  error: string | null;
  critical_error: "init" | "run" | "eval" | "timeout" | "cancelled" | "final_result" | null;
  filter: boolean;
  git_patch: string | null;
  messages: ProrlMessages["messages"];
  tools: Trajectory["tools"];
  timing: {
    init_time: number;
    run_time: number;
    eval_time: number;
    others_time: number;
    counted_elapsed: number;
    timeout_triggered: boolean;
  };
  job_id: string;
  reward: number | null;
  stop_reason: string | null;
  cancelled: boolean;
  failure_class: "infra" | "task" | "agent" | null;
};

export type ResultOptions = {
  /** Whether each assistant message carries its whole prompt, which makes a result quadratic in its turns. */
  inputIds: boolean;
  /** What the agent changed in a repository; null for other kinds. */
  patch: string | null;
};

/**
 * A finished rollout in the shape of ProRL's clients. One whose tokens can't be shown message by message has
 * no messages, which its clients take for a reason to try again.
 */
export function prorlResult(
  request: ProcessRequest,
  view: RolloutView,
  trajectory: Trajectory | null,
  { inputIds, patch }: ResultOptions,
): ProrlResult {
  const { params, echo } = request;
  const shown = showMessages(trajectory, { inputIds, params });
  const { messages, endProperly } = shown.messages;
  const end = shown.error === null ? endOf(view) : brokenTokens(shown.error);
  const malformed = trajectory?.stop_reason === "length";
  return {
    ...echo,
    success: end.error === null,
    resolved: end.critical === null && view.reward !== null && view.reward > RESOLVED_ABOVE,
    finish: view.stop_reason === "finish",
    end_properly: endProperly && !malformed && end.critical !== "init" && shown.error === null,
    error: end.error,
    critical_error: end.critical,
    filter: end.error !== null,
    git_patch: patch,
    messages,
    tools: trajectory?.tools ?? [],
    timing: timingOf(view),
    job_id: view.id,
    reward: view.reward,
    stop_reason: end.critical === null ? view.stop_reason : stopOf(end.critical),
    cancelled: end.critical === "cancelled",
    failure_class: shown.error === null ? failureClass(view.error) : "infra",
  };
}

type Shown = { messages: ProrlMessages; error: ServiceError | null };

function showMessages(
  trajectory: Trajectory | null,
  { inputIds, params }: Pick<ResultOptions, "inputIds"> & Pick<ProcessRequest, "params">,
): Shown {
  const none = { messages: [], endProperly: true };
  if (!trajectory) return { messages: none, error: null };
  try {
    const tokens = tokensOf(trajectory, inputIds);
    const endThinking = params.ensureThinkingEndProperly && !tokens;
    return { messages: prorlMessages(trajectory, { tokens, endThinking }), error: null };
  } catch (error) {
    if (!(error instanceof ServiceError)) throw error;
    return { messages: none, error };
  }
}

function brokenTokens({ message }: ServiceError): End {
  return { error: `Error in final_result: ${message}`, critical: "final_result" };
}

/** Null where the rollout was by text, or ended before the model said anything. */
function tokensOf(trajectory: Trajectory, inputIds: boolean): MessageTokens[] | null {
  const none = trajectory.token_ids !== "exact" || trajectory.turns.length === 0;
  return none ? null : messageTokens(trajectory, inputIds);
}

type End = { error: string | null; critical: ProrlResult["critical_error"] };

const IN_STAGE: Record<Stage, string> = { init: "init", run: "run agent", eval: "eval" };

/** Ends that are the agent's own doing are no critical errors: EVAL ran, and its verdict stands. */
const AGENT_ERRORS: Record<string, string> = {
  max_turns: "RuntimeError: Agent reached maximum iteration",
  loop: "AgentStuckInLoopError: Agent got stuck in a loop",
  context: "LLMContextWindowExceedError: the conversation exceeds the context window",
  length: "AgentLengthError: the answer was cut off by its length",
};

function endOf({ state, error, stop_reason, stage }: RolloutView): End {
  if (state === "succeeded") {
    return { error: AGENT_ERRORS[stop_reason ?? ""] ?? null, critical: null };
  }
  if (state === "cancelled") {
    return { error: `Cancelled: ${error?.message ?? "by request"}`, critical: "cancelled" };
  }
  const where = `Error in ${IN_STAGE[stage]}:`;
  if (error?.code === "deadline_exceeded") {
    return { error: `${where} Operation timed out`, critical: "timeout" };
  }
  return { error: `${where} ${error?.message ?? "unknown"}`, critical: stage };
}

function stopOf(critical: NonNullable<End["critical"]>): string {
  return critical === "timeout" || critical === "cancelled" ? critical : "error";
}

function timingOf({ timings, created_at, finished_at, error }: RolloutView): ProrlResult["timing"] {
  const { init, run, eval: evaluation } = timings;
  const countedMs = init.active_ms + run.active_ms + evaluation.active_ms;
  const wholeMs = Date.parse(finished_at ?? created_at) - Date.parse(created_at);
  return {
    init_time: init.active_ms / 1000,
    run_time: run.active_ms / 1000,
    eval_time: evaluation.active_ms / 1000,
    others_time: Math.max(0, wholeMs - countedMs) / 1000,
    counted_elapsed: countedMs / 1000,
    timeout_triggered: error?.code === "deadline_exceeded",
  };
}

function failureClass(error: ErrorBody | null): ProrlResult["failure_class"] {
  if (error === null || error.code === "cancelled") return null;
  if (error.boundary === "policy") return "agent";
  return error.boundary === "task" || error.boundary === "client" ? "task" : "infra";
}
