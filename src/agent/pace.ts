import { abortable } from "../lib/abortable.ts";
import type { ModelTurn } from "./dialogue.ts";

/** Null where something is not bounded. Units: turns of the model, sampled tokens. */
type Allowance = { turns: number | null; tokens: number | null };

/**
 * How far a rollout may go for now. When that is used up it waits before its next turn, alive with all that it has,
 * until it is allowed more.
 */
export class Pace {
  #allowed: Allowance | null;
  #turns = 0;
  #tokens = 0;
  #waiting: PromiseWithResolvers<void> | null = null;
  readonly #onPause: () => void;

  /** @param onPause told each time that it begins to wait */
  constructor(allowed: Allowance | null, onPause: () => void) {
    this.#allowed = allowed;
    this.#onPause = onPause;
  }

  /** From now on as much as this, whatever it has used. */
  allow(allowed: Allowance | null): void {
    this.#allowed = allowed;
    this.#turns = 0;
    this.#tokens = 0;
    if (this.#isUsedUp) return;
    this.#waiting?.resolve();
    this.#waiting = null;
  }

  /** Before a turn. @throws the reason of `signal` */
  async mayGo(signal: AbortSignal): Promise<void> {
    while (this.#isUsedUp) {
      this.#waiting ??= Promise.withResolvers();
      this.#onPause();
      await abortable(this.#waiting.promise, signal);
    }
  }

  spend({ completionTokens }: Pick<ModelTurn, "completionTokens">): void {
    this.#turns++;
    this.#tokens += completionTokens ?? 0;
  }

  get #isUsedUp(): boolean {
    if (this.#allowed === null) return false;
    const { turns, tokens } = this.#allowed;
    return (turns !== null && this.#turns >= turns) || (tokens !== null && this.#tokens >= tokens);
  }
}
