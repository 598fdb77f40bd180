import type { Dialogue } from "../agent/dialogue.ts";
import type { ToolName } from "../agent/tool.ts";
import type { Message, ToolSchema } from "../inference/engine.ts";
import type { RolloutOptions } from "../protocol/rollout.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import type { Outcome } from "../trajectory/record.ts";
import type { Recorder } from "../trajectory/recorder.ts";
import type { Verdict } from "../verifiers/verdict.ts";

export type RunContext = {
  jobId: string;
  options: RolloutOptions;
  sandbox: Sandbox | null;
  /** Opens a conversation with the rollout's model, beginning with `prompt`. */
  converse(prompt: Message[], tools: ToolSchema[]): Promise<Dialogue>;
  backendId: string | null;
  recorder: Recorder;
  signal: AbortSignal;
};

/**
 * What decides how an instance is rolled out and scored. `parse` runs on the main thread when a job is
 * submitted, the stages run in workers.
 *
 * @typeParam I the instance, as `parse` gives it
 */
export interface TaskKind<I> {
  readonly name: string;
  /** Values of `data_source` that mean this kind. */
  readonly dataSources: readonly string[];
  readonly usesSandbox: boolean;
  readonly needsBackend: boolean;
  /** Whether EVAL works in the sandbox that RUN used; otherwise it is freed before. */
  readonly evalUsesSandbox: boolean;
  readonly tools: readonly ToolName[];
  /** @throws ServiceError `invalid_field` naming the field of the row. */
  parse(row: Record<string, unknown>): I;
  /** Makes a fresh sandbox ready for the agent. */
  init(instance: I, sandbox: Sandbox | null, signal: AbortSignal): Promise<void>;
  run(instance: I, context: RunContext): Promise<Outcome>;
  /** @throws ServiceError `verifier_failed` when it can't come to a verdict. */
  evaluate(instance: I, outcome: Outcome, signal: AbortSignal): Promise<Verdict>;
}
