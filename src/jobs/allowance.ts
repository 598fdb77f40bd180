import type { BatchPlan } from "./batch.ts";

/**
 * What a rollout may do for one batch before it waits for the next one; null where that is not bounded. Units: turns
 * of the model, sampled tokens.
 */
export type Allowance = { turns: number | null; tokens: number | null };

const NOTHING: Allowance = { turns: 0, tokens: null };

/** Null where the batch does not bound its rollouts. */
export function allowanceOf(
  { maxTurns = null, maxTokens = null, unfinished }: BatchPlan,
  isOver: boolean,
): Allowance | null {
  if (isOver && unfinished === "park") return NOTHING;
  return maxTurns === null && maxTokens === null ? null : { turns: maxTurns, tokens: maxTokens };
}
