import {
  type BatchGroup,
  deliverable,
  groupsWanted,
  informativeShare,
  unneeded,
} from "../jobs/batch.ts";
import type { BatchRow } from "../store/tables.ts";
import type { BatchEnds } from "./batch-ends.ts";
import { allStand, isFullOfPauses } from "./batch-pauses.ts";
import type { BatchParts, LiveBatch } from "./live-batch.ts";
import type { Waiters } from "./waiters.ts";

/** With fewer groups that wait, a batch asks its source for more. */
const WAITING_LOW = 50;

type StepParts = BatchParts & {
  ends: BatchEnds;
  waiters: Waiters;
  /** Hears of a batch that could do with more from its source. */
  ask(row: BatchRow): void;
};

/**
 * What batches do by themselves, inside a tick: begin groups as slots free up, hand over informative ones, and end what
 * nobody needs any more. What is due is decided by `jobs/batch.ts`.
 */
export class BatchSteps {
  readonly #parts: StepParts;

  constructor(parts: StepParts) {
    this.#parts = parts;
  }

  /** The last thing of a tick, for one batch. */
  take(batch: LiveBatch): void {
    const { plan } = batch;
    const { store, afterCommit, waiters, ends } = this.#parts;
    this.#endStale(batch);
    const ready = deliverable(plan, neededBy(batch), [...batch.begun.values()]);
    for (const { seq } of ready) {
      if (neededBy(batch) === 0) break;
      batch.begun.delete(seq);
      store.groups.update(seq, { delivered: ++batch.delivered });
      if (plan.goal.tokens !== null) batch.tokens += store.batches.tokensOf(seq);
    }
    if (ready.length > 0) afterCommit(() => waiters.notify(batch.row.id));
    const needed = neededBy(batch);
    if (needed === 0) ends.finish(batch, "complete", null);
    else if (batch.failed > plan.maxFailedGroups) ends.giveUp(batch);
    else this.#goOn(batch, needed);
  }

  /**
   * Ends groups that were begun under weights that are too old, or begins anew the rollouts that were; no longer counts
   * groups that are complete.
   */
  #endStale(batch: LiveBatch): void {
    const { groups, versionsSince } = this.#parts;
    const { maxStaleness, stale } = batch.plan;
    if (maxStaleness === null) return;
    const isStale = (ms: number) => versionsSince(ms) > maxStaleness;
    for (const group of [...batch.begun.values()]) {
      const { seq, startedMs } = group;
      if (!isStale(startedMs)) continue;
      if (stale === "drop" && !group.complete) {
        group.startedMs = groups.renew(seq, isStale);
        continue;
      }
      batch.begun.delete(seq);
      groups.end(seq, "ended", `it was begun more than ${maxStaleness} weight versions ago`);
    }
  }

  #goOn(batch: LiveBatch, needed: number): void {
    const { plan } = batch;
    const { store, groups, clock } = this.#parts;
    const nowMs = clock.nowMs();
    const work = ({ seq }: BatchGroup) => store.batches.workOf(seq, nowMs);
    for (const group of unneeded(plan, needed, [...batch.begun.values()], work)) {
      if (group.complete) continue;
      groups.end(group.seq, "ended", "other groups are certain to reach the batch's goal");
    }
    this.#begin(batch, needed);
    if (batch.row.source !== null && !batch.row.closed && batch.waiting < WAITING_LOW)
      this.#parts.ask(batch.row);
    const mayBegin = batch.waiting > 0 || !batch.row.closed;
    const isOver = !mayBegin || isFullOfPauses(batch, needed, groups);
    if (isOver && allStand(batch, groups)) this.#parts.ends.exhaust(batch);
  }

  /** Begins as many groups as there is room for and need of. */
  #begin(batch: LiveBatch, needed: number): void {
    if (batch.waiting === 0) return;
    const { store, groups } = this.#parts;
    const { plan } = batch;
    const share = informativeShare(batch, plan.expectedShare);
    const wanted = groupsWanted(plan, needed, [...batch.begun.values()], share);
    if (wanted === 0 || isFullOfPauses(batch, needed, groups)) return;
    let room = this.#parts.room(batch.client);
    for (let begun = 0; begun < wanted && room > 0 && this.#fits(batch); begun++) {
      const row = store.batches.waiting(batch.row.seq, 1)[0];
      if (!row) return;
      batch.waiting--;
      const { seq, position } = row;
      const startedMs = row.started_ms ?? this.#parts.clock.nowMs();
      const place = { seq, position: position ?? 0, startedMs };
      batch.begun.set(seq, { ...place, informative: null, complete: false });
      groups.begin(row);
      room -= groups.openRollouts(seq);
    }
  }

  /** Whether one more group keeps to the number of rollouts that the batch may have at once. */
  #fits({ plan, begun, groupSize }: LiveBatch): boolean {
    if (plan.maxRollouts === null) return true;
    let open = 0;
    for (const seq of begun.keys()) open += this.#parts.groups.openRollouts(seq);
    return open === 0 || open + groupSize <= plan.maxRollouts;
  }
}

/** How many more groups it takes to its goal. */
function neededBy({ plan, delivered, tokens }: LiveBatch): number {
  const { goal } = plan;
  if (goal.tokens !== null && delivered > 0 && tokens >= goal.tokens) return 0;
  return Math.max(0, goal.groups - delivered);
}
