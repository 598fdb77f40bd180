import type { Sandbox } from "../../sandbox/sandbox.ts";
import type { RunContext } from "../task-kind.ts";
import { hostValues } from "./host-values.ts";
import { prepareStep } from "./prepare.ts";
import { missedThreshold, type Rewards } from "./rewards.ts";
import type { HarborInstance, HarborStep } from "./row.ts";
import { endProcesses, verifyStep } from "./verify.ts";

/** A step that was verified while the rollout went on. */
export type VerifiedStep = { name: string; rewards: Rewards; log: string };

const MAX_SHOWN = 500;

/**
 * A task in steps: the agent's `finish` ends a step, whose tests run at once, and is answered with the next step.
 * What the agent does not come to is verified as it is.
 */
export class Steps {
  readonly verified: VerifiedStep[] = [];
  readonly #instance: HarborInstance;
  readonly #context: Pick<RunContext, "settings" | "signal">;
  readonly #sandbox: Sandbox;
  #at = 0;
  #over = false;

  constructor(
    instance: HarborInstance,
    context: Pick<RunContext, "settings" | "signal">,
    sandbox: Sandbox,
  ) {
    this.#instance = instance;
    this.#context = context;
    this.#sandbox = sandbox;
  }

  async begin(): Promise<HarborStep> {
    return await this.#prepare();
  }

  /** Verifies the present step. The instruction of the next; null where there is none, or none may follow. */
  async next(): Promise<string | null> {
    if (this.#over) return null;
    await this.#verify();
    if (this.#over) return null;
    const { instruction } = await this.#prepare();
    return `The step is done. The next step of the task:\n\n${instruction}`;
  }

  /** Verifies what the agent has not come to. */
  async end(): Promise<void> {
    while ((await this.next()) !== null);
  }

  async #prepare(): Promise<HarborStep> {
    const step = this.#step;
    await prepareStep(step, this.#instance.workdir, this.#sandbox, this.#context.signal);
    return step;
  }

  async #verify(): Promise<void> {
    const { settings, signal } = this.#context;
    const { name, verifierEnv, minReward } = this.#step;
    await endProcesses(this.#sandbox, signal);
    const env = hostValues(verifierEnv, "verifier.env", settings.envs);
    const { rewards, log } = await verifyStep(
      this.#step,
      this.#instance,
      env,
      this.#sandbox,
      signal,
    );
    this.verified.push({ name: name ?? "", rewards, log: log.slice(-MAX_SHOWN) });
    this.#at++;
    const isLast = this.#at === this.#instance.steps.length;
    this.#over = isLast || missedThreshold(rewards, minReward) !== null;
  }

  get #step(): HarborStep {
    return this.#instance.steps[this.#at] as HarborStep;
  }
}
