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
    this.finish(batch, "exhausted", this.#exhaustion(batch));
  }

  #exhaustion({ row, delivered, plan, decided, failed, begun }: LiveBatch): ErrorBody {
    const { store } = this.#parts;
    const counts = store.batches.groupCounts(row.seq);
    const wanted = `the goal is ${plan.goal.groups}`;
    if (counts.length === 0) {
      const message = `no instance was given and none was left to go on with, and ${wanted}`;
      return { ...errorBodyOf("batch_exhausted", message), mend: GIVE_MORE };
    }
    const paused = [...begun.values()].filter(({ complete }) => !complete).length;
    let ended = 0;
    for (const { state, count } of counts) if (state === "ended") ended += count;
    const why = (state: "failed" | "ended") => store.batches.lastError(row.seq, state)?.message;
    const parts = [
      `its instances gave ${delivered} informative groups, ${wanted}`,
      `${decided} groups were decided`,
      ...(failed > 0 ? [`${failed} failed, the last because: ${why("failed")}`] : []),
      ...(ended > 0 ? [`${ended} were ended, the last because ${why("ended")}`] : []),
      ...(paused > 0 ? [`${paused} have used up what they may do for this batch`] : []),
    ];
    const mend = paused === 0 ? GIVE_MORE : GO_ON;
    return { ...errorBodyOf("batch_exhausted", parts.join("; ")), mend };
  }

  /** More of its groups failed than may. */
  giveUp(batch: LiveBatch): void {
    const last = this.#parts.store.batches.lastError(batch.row.seq, "failed");
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
    if (state === "cancelled") carry.drop(row, "cancelled");
    else if (!carries) {
      carry.endBegun(row, "ended");
      // What was read ahead of need is for whoever reads on: nobody else comes back to those lines.
      if (row.source === null) carry.endWaiting(row, "ended");
      carry.expireLater({ ...row, ...finished });
    } else {
      if (plan.unfinished === "restart") for (const seq of begun.keys()) groups.park(seq);
      if (plan.unfinished === "park") for (const seq of begun.keys()) groups.putAside(seq);
      carry.expireLater({ ...row, ...finished });
    }
    store.groupEvents.batchEnded(row);
    afterCommit(() => waiters.notify(row.id));
    afterCommit(() => feed.publishEnd({ kind: "batch", state }));
  }
}
