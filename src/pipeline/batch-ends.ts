import { type ErrorBody, errorBodyOf } from "../errors.ts";
import type { BatchState } from "../jobs/batch.ts";
import type { CarryOver } from "./carry-over.ts";
import type { BatchParts, LiveBatch } from "./live-batch.ts";
import type { Waiters } from "./waiters.ts";

const GIVE_MORE = "give more instances, or ask for fewer groups";
const GO_ON =
  "go on with them in the next batch, by series or carry_from; or let them do more for each";

type EndParts = BatchParts & {
  /** Batches under way, by their `seq`; one that ends is taken out. */
  live: Map<number, LiveBatch>;
  carry: CarryOver;
  waiters: Waiters;
};

/** How batches end: with which state and error, and what becomes of their groups. All of it inside a tick. */
export class BatchEnds {
  readonly #parts: EndParts;

  constructor(parts: EndParts) {
    this.#parts = parts;
  }

  /** It has nothing more to begin, and its goal is not reached. */
  exhaust(batch: LiveBatch): void {
    const { delivered, plan, decided, begun } = batch;
    const paused = [...begun.values()].filter(({ complete }) => !complete).length;
    const rest = paused === 0 ? "" : `; ${paused} have used up what they may do for this batch`;
    const message = `its instances gave ${delivered} informative groups, the goal is ${plan.goal.groups}; ${decided} groups were decided${rest}`;
    const mend = paused === 0 ? GIVE_MORE : GO_ON;
    this.finish(batch, "exhausted", { ...errorBodyOf("batch_exhausted", message), mend });
  }

  /** More of its groups failed than may. */
  giveUp(batch: LiveBatch): void {
    const last = this.#parts.store.batches.lastFailure(batch.row.seq);
    if (!last) throw new Error(`batch ${batch.row.id} counts failed groups that are not there`);
    const message = `${batch.failed} of its groups failed, the last because: ${last.message}`;
    this.finish(batch, "failed", { ...last, message });
  }

  /** Books its end, and ends or keeps for the next one what is under way. */
  finish(batch: LiveBatch, state: Exclude<BatchState, "running">, error: ErrorBody | null): void {
    const { store, groups, clock, afterCommit, feed, live, carry, waiters } = this.#parts;
    const { row, plan, begun } = batch;
    live.delete(row.seq);
    const finished = { state, finished_ms: clock.nowMs() };
    store.batches.update(row.seq, {
      ...finished,
      ...(error ? { error: JSON.stringify(error) } : {}),
    });
    const carries = plan.unfinished !== "end" && state !== "cancelled" && state !== "failed";
    if (!carries) carry.drop(row, state === "cancelled" ? "cancelled" : "ended");
    else {
      if (plan.unfinished === "restart") for (const seq of begun.keys()) groups.park(seq);
      if (plan.unfinished === "park") for (const seq of begun.keys()) groups.putAside(seq);
      carry.expireLater({ ...row, ...finished });
    }
    store.groupEvents.batchEnded(row);
    afterCommit(() => waiters.notify(row.id));
    afterCommit(() => feed.publishEnd({ kind: "batch", state }));
  }
}
