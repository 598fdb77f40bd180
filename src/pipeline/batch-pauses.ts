import { type Allowance, allowanceOf } from "../jobs/allowance.ts";
import { type BatchPlan, informativeShare } from "../jobs/batch.ts";
import type { Store } from "../store/store.ts";
import type { Groups } from "./groups.ts";
import type { LiveBatch } from "./live-batch.ts";

/** Whether nothing of a batch moves before another one goes on with it. */
export function allStand(batch: LiveBatch, groups: Groups): boolean {
  return standing(batch, groups) === unfinished(batch);
}

/** Whether as many groups wait for another batch as this one may begin: more would only wait as well. */
export function isFullOfPauses(batch: LiveBatch, needed: number, groups: Groups): boolean {
  const { plan } = batch;
  if (allowanceOf(plan, false) === null) return false;
  const share = informativeShare(batch, plan.expectedShare);
  return standing(batch, groups) >= Math.ceil((needed * plan.oversampling) / share);
}

/**
 * What a member of a group may do in RUN for its batch, and whether it may wait in its sandbox for the next one.
 *
 * @param live whether the batch is under way
 */
export function allowanceIn(
  store: Store,
  batchSeq: number | null,
  live: LiveBatch | undefined,
): { allowance: Allowance | null; stays: boolean } {
  const row = live || batchSeq === null ? null : store.batches.bySeq(batchSeq);
  const plan = live?.plan ?? (row && (JSON.parse(row.options) as { plan: BatchPlan }).plan);
  if (!plan) return { allowance: null, stays: false };
  return {
    allowance: allowanceOf(plan, !live),
    stays: Boolean(live) || plan.unfinished !== "park",
  };
}

/** Groups whose rollouts all wait for another batch. */
function standing({ begun }: LiveBatch, groups: Groups): number {
  let count = 0;
  for (const { seq, complete } of begun.values()) {
    if (!complete && groups.openRollouts(seq) === 0) count++;
  }
  return count;
}

function unfinished({ begun }: LiveBatch): number {
  let count = 0;
  for (const { complete } of begun.values()) if (!complete) count++;
  return count;
}
