import type { Dialogue } from "../agent/dialogue.ts";
import type { AgentOutcome } from "../agent/loop.ts";
import type { McpAddress } from "../agent/mcp/mcp-server.ts";
import type { ToolName } from "../agent/tool.ts";
import type { Message, ToolSchema } from "../inference/engine.ts";
import type { RolloutOptions } from "../protocol/rollout.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Outcome } from "../trajectory/record.ts";
import type { Recorder } from "../trajectory/recorder.ts";
import type { Verdict } from "../verifiers/verdict.ts";
import type { AgentTask } from "./drive-agent.ts";
import type { Golden } from "./golden.ts";
import type { SandboxPlan } from "./sandbox-plan.ts";
import type { TaskSettings } from "./settings.ts";

export type RunContext = {
  jobId: string;
  options: RolloutOptions;
  settings: TaskSettings;
  sandbox: Sandbox | null;
  /** Whose tools the agent gets besides. */
  mcpServers: McpAddress[];
  /** Drives the agent loop, with the tools, prompts and rules that the rollout asks for. */
  agent(task: AgentTask): Promise<AgentOutcome>;
  /** For a kind with a loop of its own. Opens a conversation with the rollout's model, beginning with `prompt`. */
  converse(prompt: Message[], tools: ToolSchema[]): Promise<Dialogue>;
  backendId: string | null;
  recorder: Recorder;
  /**
   * The agent is done: EVAL's fresh sandbox starts while the kind still takes what EVAL needs from the
   * agent's. Without this call it starts when `run` has returned.
   */
  agentDone(): void;
  signal: AbortSignal;
};

export type EvalContext = {
  jobId: string;
  settings: TaskSettings;
  /** As `sandboxes` plans it. */
  sandbox: Sandbox | null;
  signal: AbortSignal;
};

/**
 * What decides how an instance is rolled out and scored. `parse` and `sandboxes` run on the main thread when
 * a job is submitted, and again in workers, where the stages run.
 *
 * @typeParam I the instance, as `parse` gives it
 */
export interface TaskKind<I> {
  readonly name: string;
  /** The user's module that it is from; absent for kinds of our own. */
  readonly module?: string;
  /** Values of `data_source` that mean this kind; one that ends with `*` stands for all that begin so. */
  readonly dataSources: readonly string[];
  readonly needsBackend: boolean;
  readonly tools: readonly ToolName[];
  /**
   * EVAL runs nothing but what the policy wrote, so that a sandbox that goes beyond its memory, processes or disk
   * is a verdict with reward 0 and not a failure.
   */
  readonly limitsAreVerdicts?: boolean;
  /** @throws ServiceError `invalid_field` naming the field of the row. */
  parse(row: Record<string, unknown>): I;
  sandboxes(instance: I, settings: TaskSettings): SandboxPlan;
  /** Makes a fresh sandbox ready for the agent. */
  init(instance: I, sandbox: Sandbox | null, signal: AbortSignal): Promise<void>;
  run(instance: I, context: RunContext): Promise<Outcome>;
  /**
   * What an agent would leave that gives the row's own solution, or does nothing.
   * @throws ServiceError `invalid_field` where the row has no solution.
   */
  golden?(instance: I, which: Golden): Outcome;
  /**
   * Puts the row's own solution into the agent's sandbox, as an agent would. A kind that has this and no `golden` is
   * scored by way of the agent's sandbox alone.
   * @param part of a task that is given in parts, counted from 0
   */
  solve?(instance: I, context: RunContext, part: number): Promise<void>;
  /** @throws ServiceError `invalid_field` where `solve` would lack a solution. */
  needSolution?(instance: I): void;
  /**
   * Turns what RUN left into a number. What the model did badly is a verdict with reward 0 and a reason; a
   * verifier that could not do its work throws.
   *
   * @throws ServiceError `verifier_failed`, `judge_failed`, `reward_server_failed`, `sandbox_*`.
   */
  evaluate(instance: I, outcome: Outcome, context: EvalContext): Promise<Verdict>;
}
