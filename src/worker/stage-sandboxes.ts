import { createHash } from "node:crypto";
import { abortable } from "../lib/abortable.ts";
import type { StartStage, WorkerSettings } from "../pipeline/messages.ts";
import { explainOwner } from "../sandbox/image.ts";
import type { Images } from "../sandbox/images/images.ts";
import type { Sandbox, SandboxDriver, SandboxHandle, SandboxLimits } from "../sandbox/sandbox.ts";
import type { Peak } from "../sandbox/watchdog.ts";
import { chooseImage, type SandboxPlan } from "../tasks/sandbox-plan.ts";

export type SandboxParts = {
  settings: WorkerSettings;
  driver: SandboxDriver;
  images: Pick<Images, "acquire">;
  /** By a few system calls. */
  isOnNode(image: string): boolean;
  attach(handle: SandboxHandle, signal: AbortSignal, env: Record<string, string>): Promise<Sandbox>;
  /** Does not fail: what could not be cleaned up is told to the operator. */
  end(handle: SandboxHandle): Promise<void>;
  /** Ends a sandbox that goes beyond its limits; `crossed` says by which. */
  watch(
    handle: SandboxHandle,
    limits: SandboxLimits,
  ): Disposable & { readonly crossed: AbortSignal; readonly peak: Peak };
  sandboxStarted(handle: SandboxHandle): void;
};

type Role = "agent" | "evaluation";

/** The sandboxes of one stage: the one it works in, and while RUN ends that of EVAL as well. */
export class StageSandboxes {
  /** What the stage works in; after `handOver` what the next stage gets. */
  handle: SandboxHandle | null;
  readonly #job: StartStage;
  readonly #parts: SandboxParts;
  readonly #signal: AbortSignal;
  #fresh: Promise<SandboxHandle | null> | null = null;
  #ending: Promise<unknown> = Promise.resolve();
  /** Of a sandbox that this stage has started. */
  #image: string | null = null;
  #watched: { readonly peak: Peak } | null = null;

  constructor(job: StartStage, parts: SandboxParts, signal: AbortSignal) {
    this.#job = job;
    this.#parts = parts;
    this.#signal = signal;
    this.handle = job.handle;
    signal.addEventListener("abort", () => this.#endCurrent(), { once: true });
  }

  /** The most that the sandbox used while the stage worked in it; null where nobody looked. */
  get peak(): Peak | null {
    const peak = this.#watched?.peak;
    return peak && peak.processes > 0 ? peak : null;
  }

  /** Makes the stage's sandbox, unless the stage before has left it. */
  async ensure(plan: SandboxPlan, role: Role): Promise<void> {
    this.handle ??= await this.#start(plan, role);
  }

  /**
   * Starts EVAL's sandbox, once. One that does not start is EVAL's to try again, and to fail by: RUN has
   * done its work. An image that is not on the node is waited for without a slot, before EVAL.
   */
  startFresh(plan: SandboxPlan): void {
    if (plan.evaluation !== "fresh") return;
    this.#fresh ??= this.#startOnNode(plan).catch(() => null);
  }

  /** Ends the agent's sandbox; EVAL's own takes its place, or nothing. */
  async handOver(): Promise<void> {
    this.#endCurrent();
    await this.#ending;
    this.handle = (await this.#fresh) ?? null;
    this.#fresh = null;
  }

  /** Resolves when what an abort has ended is gone. */
  async settled(): Promise<void> {
    await this.#ending;
  }

  async endAll(): Promise<void> {
    this.#endCurrent();
    await this.#ending;
    const fresh = await this.#fresh;
    this.#fresh = null;
    if (fresh) await this.#parts.end(fresh);
  }

  /**
   * At once where the stage is aborted, before what it did is unwound: the kernel takes many sandboxes apart while the
   * thread does the rest for many.
   */
  #endCurrent(): void {
    const { handle } = this;
    this.handle = null;
    if (handle) this.#ending = Promise.all([this.#ending, this.#parts.end(handle)]);
  }

  /**
   * Attaches for the time of `work`, which is aborted when the sandbox dies under it. Without a sandbox
   * `work` gets null.
   *
   * @param keep lets go of it afterwards, for another thread. One that is ended instead needs no letting go.
   */
  async use<T>(
    plan: SandboxPlan,
    keep: boolean,
    work: (sandbox: Sandbox | null, signal: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const { handle } = this;
    if (!handle) return abortable(work(null, this.#signal), this.#signal);
    const { env = {}, evaluationEnv = env } = plan;
    const own = this.#job.stage === "eval" && plan.evaluation === "fresh" ? evaluationEnv : env;
    const sandbox = await this.#parts.attach(handle, this.#signal, own);
    using watch = this.#parts.watch(handle, this.#limitsOf(plan));
    this.#watched = watch;
    const signal = AbortSignal.any([this.#signal, watch.crossed, sandbox.died]);
    const result = await abortable(work(sandbox, signal), signal).catch(async (error) => {
      throw this.#image === null ? error : await explainOwner(error, this.#image);
    });
    if (keep) await sandbox.detach();
    return result;
  }

  async #start(plan: SandboxPlan, role: Role): Promise<SandboxHandle> {
    const { settings, driver, images, sandboxStarted } = this.#parts;
    const { writable } = settings.sandbox;
    const { path, lock } = await images.acquire(this.#imageOf(plan, role), this.#signal);
    using held = lock;
    const limits = this.#limitsOf(plan);
    const spec = { id: this.#sandboxId(role), image: path, writable, limits };
    this.#image = path;
    const handle = await driver.start(spec, this.#signal);
    // From here on the lock belongs to the sandbox, and ends with it.
    if (held) handle.imageLock = { file: held.path, fd: held.detach() };
    sandboxStarted(handle);
    return handle;
  }

  async #startOnNode(plan: SandboxPlan): Promise<SandboxHandle | null> {
    if (!this.#parts.isOnNode(this.#imageOf(plan, "evaluation"))) return null;
    return await this.#start(plan, "evaluation");
  }

  #limitsOf({ limits = {} }: SandboxPlan): SandboxLimits {
    const { writable: _writable, ...service } = this.#parts.settings.sandbox;
    return {
      ...service,
      memoryBytes: Math.min(service.memoryBytes, limits.memoryBytes ?? Number.POSITIVE_INFINITY),
      diskBytes: Math.min(service.diskBytes, limits.diskBytes ?? Number.POSITIVE_INFINITY),
    };
  }

  #imageOf(plan: SandboxPlan, role: Role): string {
    if (role === "evaluation" && plan.evaluationImage) return plan.evaluationImage;
    const { image } = JSON.parse(this.#job.options) as { image?: string };
    return chooseImage(plan, image, this.#parts.settings.defaultImage);
  }

  /** Names its folder, and is seen inside: short, and of the same length for every job. */
  #sandboxId(role: Role): string {
    const { jobId, attempt } = this.#job;
    const digest = createHash("sha256").update(`${role} ${jobId}`).digest("hex");
    return `${digest.slice(0, 20)}.${attempt}`;
  }
}
