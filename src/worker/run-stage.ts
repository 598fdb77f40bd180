import type { Pace } from "../agent/pace.ts";
import { PacedDialogue } from "../agent/paced-dialogue.ts";
import { type ErrorBody, ServiceError, toErrorBody } from "../errors.ts";
import type { Message, ToolSchema } from "../inference/engine.ts";
import { parseWithTools } from "../lib/exact-tools.ts";
import { wellFormed } from "../lib/well-formed.ts";
import type { StageFinished, StartStage } from "../pipeline/messages.ts";
import type { RolloutOptions } from "../protocol/rollout.ts";
import { driveAgent } from "../tasks/drive-agent.ts";
import { goldenKind } from "../tasks/golden.ts";
import { mcpServersFor } from "../tasks/mcp-servers.ts";
import { taskKindByName } from "../tasks/registry.ts";
import { NO_SANDBOX } from "../tasks/sandbox-plan.ts";
import type { TaskKind } from "../tasks/task-kind.ts";
import type { Outcome } from "../trajectory/record.ts";
import { Recorder } from "../trajectory/recorder.ts";
import type { Verdict } from "../verifiers/verdict.ts";
import { hungIn } from "./hung-in.ts";
import { type Engines, openDialogue } from "./open-dialogue.ts";
import { type SandboxParts, StageSandboxes } from "./stage-sandboxes.ts";
import { toldTurns } from "./told-turns.ts";

export type StageParts = SandboxParts & {
  engines: Engines;
  pace: Pace;
  /** Tells that nothing of an aborted stage runs any more. Resolves when it is its turn to write its record. */
  slotFreed(): Promise<void>;
};

/** More is left out: a timeline is read by people. Units: characters. */
const MAX_TURNS_LENGTH = 256 * 1024;

/** The parts of `StageFinished` that the stages fill in. */
type Result = { outcome: string | null; verdict: Verdict | null };

/**
 * One stage of one job, from its message to its answer. It never throws: whatever happens becomes an event,
 * and a sandbox that the next stage does not need is gone before that event is sent.
 */
export async function runStage(
  start: StartStage,
  parts: StageParts,
  signal: AbortSignal,
  recorder = new Recorder(start.jobId, start.attempt),
): Promise<StageFinished> {
  const stage = new StageRun(start, parts, signal, recorder);
  const finished = { type: "stage_finished", ...identity(start) } as const;
  try {
    const { outcome, verdict } = await stage.work();
    await stage.release();
    return {
      ...finished,
      handle: stage.sandboxes.handle,
      error: null,
      outcome,
      trajectory: stage.trajectory(),
      ...stage.usage(),
      verdict,
    };
  } catch (thrown) {
    const error = stage.placed(toErrorBody(signal.aborted ? signal.reason : thrown));
    await stage.sandboxes.endAll();
    if (signal.aborted && recorder.hasContent) await parts.slotFreed();
    const nothing = { handle: null, outcome: null, verdict: null };
    const turns = error.retryable ? stage.turns() : {};
    const left = { trajectory: stage.trajectory(), ...turns, ...stage.usage() };
    return { ...finished, ...nothing, error, ...left };
  }
}

function identity({ jobId, attempt, stage }: StartStage) {
  return { jobId, attempt, stage };
}

class StageRun {
  readonly sandboxes: StageSandboxes;
  readonly #start: StartStage;
  readonly #parts: StageParts;
  readonly #recorder: Recorder;
  #plan = NO_SANDBOX;
  /** The trajectory of a RUN that has come to its end, checked. */
  #finished: string | null = null;

  constructor(start: StartStage, parts: StageParts, signal: AbortSignal, recorder: Recorder) {
    this.#start = start;
    this.#parts = parts;
    this.sandboxes = new StageSandboxes(start, parts, signal);
    this.#recorder = recorder;
  }

  work(): Promise<Result> {
    const instance = this.#kind.parse(
      parseWithTools(this.#start.instance) as Record<string, unknown>,
    );
    this.#plan = this.#kind.sandboxes(instance, this.#parts.settings.tasks);
    switch (this.#start.stage) {
      case "init":
        return this.#init(instance);
      case "run":
        return this.#run(instance);
      case "eval":
        return this.#evaluate(instance);
    }
  }

  // biome-ignore lint/suspicious/noExplicitAny: the instance is of the kind's own type.
  get #kind(): TaskKind<any> {
    const kind = taskKindByName(this.#start.taskKind);
    const { golden }: RolloutOptions = JSON.parse(this.#start.options);
    return golden ? goldenKind(kind, golden) : kind;
  }

  /** With where it hung, for a deadline that passed. */
  placed(error: ErrorBody): ErrorBody {
    if (error.code !== "deadline_exceeded") return error;
    const details = hungIn(this.#start.stage, this.#recorder, this.#kind);
    return details === undefined ? error : { ...error, details };
  }

  /** Leaves the sandboxes as the next stage is to find them. */
  async release(): Promise<void> {
    if (this.#keepsSandbox) return await this.sandboxes.settled();
    if (this.#start.stage === "run") this.sandboxes.startFresh(this.#plan);
    await this.sandboxes.handOver();
  }

  get #keepsSandbox(): boolean {
    const { stage } = this.#start;
    return stage === "init" || (stage === "run" && this.#plan.evaluation === "agent");
  }

  usage(): Pick<StageFinished, "sampledTokens" | "sandboxPeak"> {
    const { sampledTokens } = this.#recorder;
    const { peak } = this.sandboxes;
    return {
      ...(sampledTokens === null ? {} : { sampledTokens }),
      ...(peak === null ? {} : { sandboxPeak: peak }),
    };
  }

  turns(): Pick<StageFinished, "turns"> {
    const turns = this.#recorder.turnsJson();
    return turns === null || turns.length > MAX_TURNS_LENGTH ? {} : { turns };
  }

  trajectory(): string | null {
    if (this.#finished !== null || !this.#recorder.hasContent) return this.#finished;
    return this.#recorder.toJson();
  }

  // biome-ignore lint/suspicious/noExplicitAny: see `#kind`.
  async #init(instance: any): Promise<Result> {
    if (this.#plan.agent) await this.sandboxes.ensure(this.#plan, "agent");
    await this.sandboxes.use(this.#plan, this.#keepsSandbox, (sandbox, signal) =>
      this.#kind.init(instance, sandbox, signal),
    );
    return { outcome: null, verdict: null };
  }

  // biome-ignore lint/suspicious/noExplicitAny: see `#kind`.
  async #run(instance: any): Promise<Result> {
    const { backend } = this.#start;
    const options: RolloutOptions = JSON.parse(this.#start.options);
    const outcome: Outcome = await this.sandboxes.use(
      this.#plan,
      this.#keepsSandbox,
      (sandbox, signal) => {
        const context = {
          jobId: this.#start.jobId,
          options,
          settings: this.#parts.settings.tasks,
          sandbox,
          mcpServers: this.#mcpServers(options),
          converse: (prompt: Message[], tools: ToolSchema[]) =>
            this.#converse(options, prompt, tools, signal),
          backendId: backend?.id ?? null,
          recorder: this.#recorder,
          agentDone: () => this.sandboxes.startFresh(this.#plan),
          signal,
        };
        return this.#kind.run(instance, { ...context, agent: (task) => driveAgent(context, task) });
      },
    );
    if (this.#recorder.hasContent) this.#finished = this.#recorder.finished();
    return { outcome: bounded(outcome, this.#parts.settings.maxOutcomeBytes), verdict: null };
  }

  #mcpServers(options: RolloutOptions) {
    const { taskKind, instance } = this.#start;
    const asked = options.agent?.mcp_servers;
    return mcpServersFor(taskKind, JSON.parse(instance), asked, this.#parts.settings.tasks);
  }

  async #converse(
    options: RolloutOptions,
    prompt: Message[],
    tools: ToolSchema[],
    signal: AbortSignal,
  ) {
    const { engines, settings, pace } = this.#parts;
    const { backend, jobId, attempt, record } = this.#start;
    if (!backend) throw new Error("a rollout that calls a model came without its backend");
    const dialogue = await openDialogue(engines, {
      ...{ jobId, attempt, backend, prompt, tools, signal },
      ...options.chat,
      route: options.route,
      mode: options.tokens ?? "auto",
      sampling: options.sampling ?? {},
      callTimeoutMs: settings.engineCallTimeoutMs,
      stallMs: settings.engineStallMs,
      maxReplyBytes: settings.maxReplyBytes,
    });
    return new PacedDialogue(dialogue, pace, record === null ? null : toldTurns(record));
  }

  // biome-ignore lint/suspicious/noExplicitAny: see `#kind`.
  async #evaluate(instance: any): Promise<Result> {
    if (this.#start.outcome === null) throw new Error("EVAL started without RUN's outcome");
    const outcome: Outcome = JSON.parse(this.#start.outcome);
    const { jobId } = this.#start;
    const settings = this.#parts.settings.tasks;
    if (this.#plan.evaluation === "fresh") await this.sandboxes.ensure(this.#plan, "evaluation");
    const verdict: Verdict = await this.sandboxes
      .use(this.#plan, false, (sandbox, signal) =>
        this.#kind.evaluate(instance, outcome, { jobId, settings, sandbox, signal }),
      )
      .catch((error) => {
        if (this.#kind.limitsAreVerdicts && isLimit(error)) return beyond(error);
        throw error;
      });
    if (verdict.reward >= 0 && verdict.reward <= 1)
      return { outcome: null, verdict: wellFormed(verdict) };
    throw new ServiceError("verifier_failed", `the verifier gave ${verdict.reward} as a reward`);
  }
}

const LIMITS = ["oom", "pids_limit", "disk_limit"];

function isLimit(error: unknown): error is ServiceError {
  return error instanceof ServiceError && LIMITS.includes(error.code);
}

function beyond({ code, message }: ServiceError): Verdict {
  return {
    reward: 0,
    rule: code,
    reason: `What the policy wrote went beyond a limit: ${message}.`,
  };
}

function bounded(outcome: Outcome, maxBytes: number): string {
  const json = JSON.stringify(outcome);
  if (json.length <= maxBytes) return json;
  const message = `what RUN hands over has ${json.length} bytes, and may have ${maxBytes}`;
  throw new ServiceError("outcome_too_large", message, { mend: "raise max_outcome_bytes" });
}
