import type { RolloutView } from "../../protocol/view.ts";
import type { Trajectory } from "../../trajectory/record.ts";
import { type GymResponse, gymResponse } from "./response.ts";

/**
 * What `/run` answers: the row, and what came of it. The numbers and booleans among the keys become metrics, so
 * the same ones are there each time.
 */
export type VerifyResponse = Record<string, unknown> & {
  /** 0 where there is no verdict, which `mask_sample` and the failure keys then say. */
  reward: number;
  response: GymResponse;
  resolved: number;
  num_turns: number;
  mask_sample: boolean;
  rollout_id: string;
  stop_reason: string | null;
  error?: string;
  _ng_failure_class?: string;
  _ng_failure_terminal?: boolean;
  _ng_no_persist?: boolean;
};

/** Reasons to stop that make a rollout's end the budget's doing: solved or not, it is no sample. */
const CUT_SHORT = new Set(["max_turns", "context", "length"]);

/** A finished rollout of ours as NeMo Gym's trainers and its command line read it. */
export function verifyResponse(
  row: Record<string, unknown>,
  view: RolloutView,
  trajectory: Trajectory | null,
  model: string,
): VerifyResponse {
  const { response, broken } = gymResponse(view, trajectory, model);
  const { error, stop_reason, reward } = view;
  const cut = CUT_SHORT.has(stop_reason ?? "");
  const verdict = view.state === "succeeded" && reward !== null ? reward : null;
  return {
    ...row,
    reward: verdict ?? 0,
    response,
    resolved: verdict !== null && verdict > 0.99 ? 1 : 0,
    num_turns: view.turns ?? trajectory?.turns.length ?? 0,
    mask_sample: verdict === null || cut || broken !== null,
    rollout_id: view.id,
    stop_reason,
    ...(broken !== null && { mask_reason: broken }),
    ...(error !== null && { error: error.message, ...failureKeys(error, view.state) }),
  };
}

function failureKeys(
  { code, boundary, retryable }: NonNullable<RolloutView["error"]>,
  state: RolloutView["state"],
): Partial<VerifyResponse> {
  // Written nowhere, so that a resumed collection asks for it again.
  if (state === "cancelled") return { _ng_no_persist: true };
  // What the policy did is a sample that is masked, not a failure to be tried again.
  if (boundary === "policy") return {};
  return { _ng_failure_class: code, ...(!retryable && { _ng_failure_terminal: true }) };
}
