import type { StopReason } from "../trajectory/record.ts";
import type { ModelTurn } from "./dialogue.ts";
import type { AgentRules } from "./rules.ts";

/** Counts the tokens of a rollout where its engine tells them; what it does not tell costs nothing. */
export class TokenBudget {
  #sampled = 0;
  readonly #rules: Pick<AgentRules, "maxSampledTokens" | "maxContextTokens">;

  constructor(rules: Pick<AgentRules, "maxSampledTokens" | "maxContextTokens">) {
    this.#rules = rules;
  }

  /** Why there is no further turn after this one; null where there may be. */
  spend({ promptTokens, completionTokens }: ModelTurn): StopReason | null {
    const { maxSampledTokens, maxContextTokens } = this.#rules;
    this.#sampled += completionTokens ?? 0;
    if (maxSampledTokens !== null && this.#sampled >= maxSampledTokens) return "token_budget";
    const context = (promptTokens ?? 0) + (completionTokens ?? 0);
    return maxContextTokens !== null && context >= maxContextTokens ? "context" : null;
  }
}
