import { createHash } from "node:crypto";
import { ServiceError, toErrorBody } from "../errors.ts";
import type { Message, ToolSchema } from "../inference/engine.ts";
import { abortable } from "../lib/abortable.ts";
import type { StageFinished, StartStage, WorkerSettings } from "../pipeline/messages.ts";
import type { RolloutOptions } from "../protocol/rollout.ts";
import type { Images } from "../sandbox/images/images.ts";
import type { Sandbox, SandboxDriver, SandboxHandle } from "../sandbox/sandbox.ts";
import { taskKindByName } from "../tasks/registry.ts";
import type { TaskKind } from "../tasks/task-kind.ts";
import type { Outcome } from "../trajectory/record.ts";
import { Recorder } from "../trajectory/recorder.ts";
import type { Verdict } from "../verifiers/verdict.ts";
import { type Engines, openDialogue } from "./open-dialogue.ts";
import { routedBackend } from "./routed-backend.ts";

export type StageParts = {
  settings: WorkerSettings;
  driver: SandboxDriver;
  images: Pick<Images, "acquire">;
  attach(handle: SandboxHandle, signal: AbortSignal): Promise<Sandbox>;
  /** Does not fail: what could not be cleaned up is told to the operator. */
  end(handle: SandboxHandle): Promise<void>;
  /** Ends a sandbox that goes beyond its limits; `crossed` says by which. */
  watch(handle: SandboxHandle): Disposable & { readonly crossed: AbortSignal };
  engines: Engines;
  sandboxStarted(handle: SandboxHandle): void;
};

/** The parts of `StageFinished` that the stages fill in. */
type Result = { outcome: Outcome | null; verdict: Verdict | null };

/**
 * One stage of one job, from its message to its answer. It never throws: whatever happens becomes an event,
 * and a sandbox that the next stage does not need is gone before that event is sent.
 */
export async function runStage(
  start: StartStage,
  parts: StageParts,
  signal: AbortSignal,
): Promise<StageFinished> {
  const stage = new StageRun(start, parts, signal);
  const finished = { type: "stage_finished", ...identity(start) } as const;
  try {
    const { outcome, verdict } = await stage.work();
    await stage.release();
    return {
      ...finished,
      handle: stage.handle,
      error: null,
      outcome: outcome && JSON.stringify(outcome),
      trajectory: stage.trajectory(),
      verdict,
    };
  } catch (thrown) {
    const error = toErrorBody(signal.aborted ? signal.reason : thrown);
    await stage.discard();
    const nothing = { handle: null, outcome: null, verdict: null };
    return { ...finished, ...nothing, error, trajectory: stage.trajectory() };
  }
}

function identity({ jobId, attempt, stage }: StartStage) {
  return { jobId, attempt, stage };
}

class StageRun {
  handle: SandboxHandle | null;
  readonly #start: StartStage;
  readonly #parts: StageParts;
  readonly #signal: AbortSignal;
  readonly #recorder: Recorder;

  constructor(start: StartStage, parts: StageParts, signal: AbortSignal) {
    this.#start = start;
    this.#parts = parts;
    this.#signal = signal;
    this.handle = start.handle;
    this.#recorder = new Recorder(start.jobId, start.attempt);
  }

  work(): Promise<Result> {
    const instance = this.#kind.parse(JSON.parse(this.#start.instance));
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
    return taskKindByName(this.#start.taskKind);
  }

  /** Ends the sandbox where no later stage works in it. */
  async release(): Promise<void> {
    if (!this.#keepsSandbox) await this.discard();
  }

  get #keepsSandbox(): boolean {
    const { stage } = this.#start;
    return stage === "init" || (stage === "run" && this.#kind.evalUsesSandbox);
  }

  async discard(): Promise<void> {
    const { handle } = this;
    this.handle = null;
    if (handle) await this.#parts.end(handle);
  }

  trajectory(): string | null {
    return this.#recorder.hasContent ? this.#recorder.toJson() : null;
  }

  // biome-ignore lint/suspicious/noExplicitAny: see `#kind`.
  async #init(instance: any): Promise<Result> {
    if (this.#kind.usesSandbox) {
      this.handle = await this.#startSandbox();
      this.#parts.sandboxStarted(this.handle);
    }
    await this.#inSandbox((sandbox, signal) => this.#kind.init(instance, sandbox, signal));
    return { outcome: null, verdict: null };
  }

  // biome-ignore lint/suspicious/noExplicitAny: see `#kind`.
  async #run(instance: any): Promise<Result> {
    const { backend } = this.#start;
    const options: RolloutOptions = JSON.parse(this.#start.options);
    const outcome = await this.#inSandbox((sandbox, signal) =>
      this.#kind.run(instance, {
        jobId: this.#start.jobId,
        options,
        sandbox,
        converse: (prompt, tools) => this.#converse(options, prompt, tools),
        backendId: backend?.id ?? null,
        recorder: this.#recorder,
        signal,
      }),
    );
    this.#recorder.validate();
    return { outcome, verdict: null };
  }

  #converse(options: RolloutOptions, prompt: Message[], tools: ToolSchema[]) {
    const { engines, settings } = this.#parts;
    const { backend: chosen, jobId } = this.#start;
    if (!chosen) throw new Error("a rollout that calls a model came without its backend");
    const backend = options.route ? routedBackend(chosen, options.route) : chosen;
    return openDialogue(engines, {
      ...{ jobId, backend, prompt, tools },
      ...options.chat,
      mode: options.tokens ?? "auto",
      sampling: options.sampling ?? {},
      callTimeoutMs: settings.engineCallTimeoutMs,
      maxReplyBytes: settings.maxReplyBytes,
    });
  }

  // biome-ignore lint/suspicious/noExplicitAny: see `#kind`.
  async #evaluate(instance: any): Promise<Result> {
    if (this.#start.outcome === null) throw new Error("EVAL started without RUN's outcome");
    const outcome: Outcome = JSON.parse(this.#start.outcome);
    const evaluation = this.#kind.evaluate(instance, outcome, this.#signal);
    const verdict = await abortable(evaluation, this.#signal);
    if (!(verdict.reward >= 0 && verdict.reward <= 1)) {
      throw new ServiceError("verifier_failed", `the verifier gave ${verdict.reward} as a reward`);
    }
    return { outcome: null, verdict };
  }

  async #startSandbox(): Promise<SandboxHandle> {
    const { settings, driver, images } = this.#parts;
    const { image } = JSON.parse(this.#start.options) as { image?: string };
    const chosen = image ?? settings.defaultImage;
    if (!chosen) {
      throw new ServiceError("image_not_found", "the job names no image and there is no default", {
        mend: "start rolloutd with --image DIR, or set `image` in the rollout",
      });
    }
    const { writable, ...limits } = settings.sandbox;
    const { path, lock } = await images.acquire(chosen, this.#signal);
    using held = lock;
    const spec = { id: this.#sandboxId(), image: path, writable, limits };
    const handle = await driver.start(spec, this.#signal);
    // From here on the lock belongs to the sandbox, and ends with it.
    if (held) handle.imageLock = { file: held.path, fd: held.detach() };
    return handle;
  }

  /** Names its folder, and is seen inside: short, and the same length for every job. */
  #sandboxId(): string {
    const { jobId, attempt } = this.#start;
    const digest = createHash("sha256").update(jobId).digest("hex");
    return `${digest.slice(0, 20)}.${attempt}`;
  }

  /** Attaches for the time of `work`, which is aborted when the sandbox dies under it. */
  async #inSandbox<T>(
    work: (sandbox: Sandbox | null, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    if (!this.handle) return abortable(work(null, this.#signal), this.#signal);
    const sandbox = await this.#parts.attach(this.handle, this.#signal);
    using watch = this.#parts.watch(this.handle);
    const signal = AbortSignal.any([this.#signal, watch.crossed, sandbox.died]);
    const result = await abortable(work(sandbox, signal), signal);
    // Where the sandbox is ended instead, that also cuts this thread's connection.
    if (this.#keepsSandbox) await sandbox.detach();
    return result;
  }
}
