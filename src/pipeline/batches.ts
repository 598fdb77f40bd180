import { type ErrorBody, errorBodyOf, ServiceError } from "../errors.ts";
import type { Allowance } from "../jobs/allowance.ts";
import {
  type BatchGroup,
  type BatchState,
  deliverable,
  groupsWanted,
  informativeShare,
  unneeded,
} from "../jobs/batch.ts";
import type { BatchRow } from "../store/tables.ts";
import { addGroups, sourceOf } from "./batch-instances.ts";
import { allowanceIn, allStand, isFullOfPauses } from "./batch-pauses.ts";
import { CarryOver } from "./carry-over.ts";
import type { GroupNews, GroupSubmission } from "./group-parts.ts";
import { type BatchParts, type BatchSubmission, type LiveBatch, loadBatch } from "./live-batch.ts";
import { Waiters } from "./waiters.ts";

const GIVE_MORE = "give more instances, or ask for fewer groups";
const GO_ON =
  "go on with them in the next batch, by series or carry_from; or let them do more for each";

/** With fewer groups that wait, a batch asks its source for more. */
const WAITING_LOW = 50;

/**
 * Batches under way: it begins groups as slots free up, hands over informative ones, and ends what nobody needs
 * any more. What to do is decided by `jobs/batch.ts`, inside the tick in which something happened.
 */
export class Batches {
  /** By a batch's id: notified at each group that it delivers, and at its end. */
  readonly waiters = new Waiters();
  readonly #parts: BatchParts;
  readonly #live = new Map<number, LiveBatch>();
  readonly #carry: CarryOver;
  #ask: (row: BatchRow) => void = () => {};

  constructor(parts: BatchParts) {
    this.#parts = parts;
    for (const row of parts.store.batches.running()) this.#load(row);
    this.#carry = new CarryOver(parts);
    parts.groups.listen((news) => this.#hear(news));
  }

  /** @param ask hears of a batch that could do with more from its source, inside a tick */
  listen(ask: (row: BatchRow) => void): void {
    this.#ask = ask;
  }

  stop(): void {
    this.#carry.stop();
  }

  /** Resolves when the batch is durable. */
  submit(submission: BatchSubmission): Promise<{ id: string; created: boolean }> {
    const { store, clock, groups } = this.#parts;
    return this.#parts.operate(() => {
      const { id, bodySha256, plan, base, client, open } = submission;
      const known = store.batches.byId(id);
      if (known && known.body_sha256 !== bodySha256) {
        const mend = "use a new id for a new batch";
        const message = `batch "${id}" exists with another body`;
        throw new ServiceError("id_conflict", message, { field: "id", mend });
      }
      if (known) return { id, created: false };
      const from = this.#carrier(submission);
      this.#expectRoom(submission.groups.length);
      const source = sourceOf(submission, from);
      const closed = open || source !== null ? 0 : 1;
      const row = store.batches.insert({
        ...{ id, body_sha256: bodySha256, closed, source, series: submission.series },
        options: JSON.stringify({ plan, base, client }),
        created_ms: clock.nowMs(),
      });
      if (from) this.#carry.adopt(from, row);
      // Else two batches would read on from the same place.
      if (from && source === from.source) store.batches.update(from.seq, { closed: 1 });
      addGroups(this.#parts, row, submission.groups);
      this.#load(row);
      for (const seq of this.#live.get(row.seq)?.begun.keys() ?? []) groups.goOn(seq);
      return { id, created: true };
    });
  }

  /**
   * Adds instances to a batch that is under way.
   *
   * @param at where the first of them goes; what is there already is skipped, so that a repeat adds nothing
   * @param close no more are to come
   */
  append(
    id: string,
    groups: GroupSubmission[],
    { at, close }: { at: number | null; close: boolean },
  ): Promise<{ added: number; instances: number }> {
    const { store } = this.#parts;
    return this.#parts.operate(() => {
      const row = this.#find(id);
      const batch = this.#live.get(row.seq);
      if (!batch) {
        throw new ServiceError("invalid_field", `batch "${id}" is ${row.state}`, {
          field: "id",
          mend: "start another batch, with carry_from for what this one left",
        });
      }
      const next = store.batches.nextPosition(row.seq);
      const known = at === null ? 0 : next - at;
      if (known < 0) {
        const message = `at: the next instance of batch "${id}" is number ${next}`;
        throw new ServiceError("invalid_field", message, { field: "at" });
      }
      const fresh = groups.slice(known);
      if ((fresh.length > 0 && batch.row.closed) || batch.row.source !== null) {
        const mend = 'start it with "open": true to add instances later';
        throw new ServiceError("invalid_field", `batch "${id}" takes no more instances`, {
          ...{ field: "instances", mend },
        });
      }
      this.#expectRoom(fresh.length);
      addGroups(this.#parts, row, fresh);
      batch.waiting += fresh.length;
      if (close) {
        batch.row = { ...batch.row, closed: 1 };
        store.batches.update(row.seq, { closed: 1 });
      }
      return { added: fresh.length, instances: next + fresh.length };
    });
  }

  /** What was read from a batch's source, with how far it is read now. Resolves when it is durable. */
  pulled(
    seq: number,
    { groups, source, ended }: { groups: GroupSubmission[]; source: string; ended: boolean },
  ): Promise<void> {
    return this.#parts.operate(() => {
      const batch = this.#live.get(seq);
      if (!batch) return;
      addGroups(this.#parts, batch.row, groups);
      batch.waiting += groups.length;
      const change = { source, closed: ended ? 1 : 0 };
      batch.row = { ...batch.row, ...change };
      this.#parts.store.batches.update(seq, change);
    });
  }

  /** Gives a batch up. */
  fail(seq: number, error: ErrorBody): Promise<void> {
    return this.#parts.operate(() => {
      const batch = this.#live.get(seq);
      if (batch) this.#finish(batch, "failed", error);
    });
  }

  /** Ends a batch and all that is under way for it. What it has delivered stays. Null when it does not exist. */
  cancel(id: string): Promise<BatchRow | null> {
    return this.#parts.operate(() => {
      const row = this.#parts.store.batches.byId(id);
      if (!row) return null;
      const batch = this.#live.get(row.seq);
      if (batch)
        this.#finish(batch, "cancelled", errorBodyOf("cancelled", "the batch was cancelled"));
      else this.#carry.drop(row, "cancelled");
      return this.#find(id);
    });
  }

  /** Last in a tick, before its slots are filled: begins, delivers and ends what is due. */
  replenish(): void {
    for (const batch of [...this.#live.values()]) this.#step(batch);
  }

  #step(batch: LiveBatch): void {
    const { plan } = batch;
    const { store, afterCommit } = this.#parts;
    this.#endStale(batch);
    const ready = deliverable(plan, this.#needed(batch), [...batch.begun.values()]);
    for (const { seq } of ready) {
      if (this.#needed(batch) === 0) break;
      batch.begun.delete(seq);
      store.groups.update(seq, { delivered: ++batch.delivered });
      if (plan.goal.tokens !== null) batch.tokens += store.batches.tokensOf(seq);
    }
    if (ready.length > 0) afterCommit(() => this.waiters.notify(batch.row.id));
    const needed = this.#needed(batch);
    if (needed === 0) this.#finish(batch, "complete", null);
    else if (batch.failed > plan.maxFailedGroups) this.#giveUp(batch);
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
      this.#ask(batch.row);
    const mayBegin = batch.waiting > 0 || !batch.row.closed;
    const isOver = !mayBegin || isFullOfPauses(batch, needed, groups);
    if (isOver && allStand(batch, groups)) this.#exhaust(batch);
  }

  /** What a member of a group may do in RUN for its batch, and whether it may wait in its sandbox for the next one. */
  allowance(groupSeq: number): { allowance: Allowance | null; stays: boolean } {
    const { store, groups } = this.#parts;
    const seq = groups.batchOf(groupSeq);
    return allowanceIn(store, seq, seq === null ? undefined : this.#live.get(seq));
  }

  /** Begins as many groups as there is room for and need of. */
  #begin(batch: LiveBatch, needed: number): void {
    if (batch.waiting === 0) return;
    const { store, groups, room } = this.#parts;
    const { plan } = batch;
    const share = informativeShare(batch, plan.expectedShare);
    const wanted = groupsWanted(plan, needed, [...batch.begun.values()], share);
    if (wanted === 0 || isFullOfPauses(batch, needed, groups)) return;
    let free = Math.min(room(batch.client), this.#allowed(batch));
    for (let begun = 0; begun < wanted && free > 0; begun++) {
      const row = store.batches.waiting(batch.row.seq, 1)[0];
      if (!row) return;
      batch.waiting--;
      const { seq, position } = row;
      const startedMs = row.started_ms ?? this.#parts.clock.nowMs();
      const place = { seq, position: position ?? 0, startedMs };
      batch.begun.set(seq, { ...place, informative: null, complete: false });
      groups.begin(row);
      free -= groups.openRollouts(seq);
    }
  }

  #allowed({ plan, begun }: LiveBatch): number {
    if (plan.maxRollouts === null) return Number.POSITIVE_INFINITY;
    let open = 0;
    for (const seq of begun.keys()) open += this.#parts.groups.openRollouts(seq);
    return plan.maxRollouts - open;
  }

  #needed({ plan, delivered, tokens }: LiveBatch): number {
    const { goal } = plan;
    if (goal.tokens !== null && delivered > 0 && tokens >= goal.tokens) return 0;
    return Math.max(0, goal.groups - delivered);
  }

  #hear({ group, state, informative }: GroupNews): void {
    const batch = group.batch_seq === null ? undefined : this.#live.get(group.batch_seq);
    const entry = batch?.begun.get(group.seq);
    if (!batch || !entry) return;
    if (state === "running") {
      entry.informative = informative;
      return;
    }
    batch.begun.delete(group.seq);
    if (informative !== null) batch.decided++;
    if (state === "failed") batch.failed++;
    if (informative !== true) return;
    batch.informative++;
    // Behind those that were complete before it.
    batch.begun.set(group.seq, { ...entry, informative, complete: true });
  }

  #exhaust(batch: LiveBatch): void {
    const { delivered, plan, decided, begun } = batch;
    const paused = [...begun.values()].filter(({ complete }) => !complete).length;
    const rest = paused === 0 ? "" : `; ${paused} have used up what they may do for this batch`;
    const message = `its instances gave ${delivered} informative groups, the goal is ${plan.goal.groups}; ${decided} groups were decided${rest}`;
    const mend = paused === 0 ? GIVE_MORE : GO_ON;
    this.#finish(batch, "exhausted", { ...errorBodyOf("batch_exhausted", message), mend });
  }

  #giveUp(batch: LiveBatch): void {
    const last = this.#parts.store.batches.lastFailure(batch.row.seq);
    if (!last) throw new Error(`batch ${batch.row.id} counts failed groups that are not there`);
    const message = `${batch.failed} of its groups failed, the last because: ${last.message}`;
    this.#finish(batch, "failed", { ...last, message });
  }

  #finish(batch: LiveBatch, state: Exclude<BatchState, "running">, error: ErrorBody | null): void {
    const { store, groups, clock, afterCommit, feed } = this.#parts;
    const { row, plan, begun } = batch;
    this.#live.delete(row.seq);
    const finished = { state, finished_ms: clock.nowMs() };
    store.batches.update(row.seq, {
      ...finished,
      ...(error ? { error: JSON.stringify(error) } : {}),
    });
    const carries = plan.unfinished !== "end" && state !== "cancelled" && state !== "failed";
    if (!carries) this.#carry.drop(row, state === "cancelled" ? "cancelled" : "ended");
    else {
      if (plan.unfinished === "restart") for (const seq of begun.keys()) groups.park(seq);
      if (plan.unfinished === "park") for (const seq of begun.keys()) groups.putAside(seq);
      this.#carry.expireLater({ ...row, ...finished });
    }
    store.groupEvents.batchEnded(row);
    afterCommit(() => this.waiters.notify(row.id));
    afterCommit(() => feed.publishEnd({ kind: "batch", state }));
  }

  #load(row: BatchRow): void {
    this.#live.set(row.seq, loadBatch(this.#parts, row));
  }

  #expectRoom(count: number): void {
    let waiting = 0;
    for (const batch of this.#live.values()) waiting += batch.waiting;
    if (waiting + count <= this.#parts.settings.maxQueuedJobs) return;
    const message = `${waiting} groups wait in batches`;
    throw new ServiceError("queue_full", message, { mend: "give the rest later" });
  }

  #carrier({ carryFrom, series }: BatchSubmission): BatchRow | null {
    if (carryFrom !== null)
      return this.#carry.carrier(this.#find(carryFrom, "carry_from"), "carry_from");
    const last = series === null ? null : this.#parts.store.batches.lastOfSeries(series);
    return last && this.#carry.carrier(last, "series");
  }

  #find(id: string, field = "id"): BatchRow {
    const row = this.#parts.store.batches.byId(id);
    if (row) return row;
    throw new ServiceError("not_found", `there is no batch "${id}"`, { field });
  }
}
