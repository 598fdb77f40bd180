import { type ErrorBody, errorBodyOf, ServiceError } from "../errors.ts";
import type { Allowance } from "../jobs/allowance.ts";
import { clientOfBatch, scopeOf, sees } from "../jobs/owner.ts";
import type { BatchRow } from "../store/tables.ts";
import { BatchEnds } from "./batch-ends.ts";
import { addGroups, sourceOf } from "./batch-instances.ts";
import { allowanceIn } from "./batch-pauses.ts";
import { BatchSteps } from "./batch-steps.ts";
import { CarryOver } from "./carry-over.ts";
import type { GroupNews, GroupSubmission } from "./group-parts.ts";
import { type BatchParts, type BatchSubmission, type LiveBatch, loadBatch } from "./live-batch.ts";
import { Waiters } from "./waiters.ts";

/**
 * Batches under way, as clients ask for them: what they are given, what their groups come to, and their end. What a
 * batch does by itself is `batch-steps.ts`.
 */
export class Batches {
  /** By a batch's id: notified at each group that it delivers, and at its end. */
  readonly waiters = new Waiters();
  readonly #parts: BatchParts;
  readonly #live = new Map<number, LiveBatch>();
  readonly #carry: CarryOver;
  readonly #ends: BatchEnds;
  readonly #steps: BatchSteps;
  #ask: (row: BatchRow) => void = () => {};

  constructor(parts: BatchParts) {
    this.#parts = parts;
    for (const row of parts.store.batches.running()) this.#load(row);
    this.#carry = new CarryOver(parts);
    const { waiters } = this;
    this.#ends = new BatchEnds({ ...parts, live: this.#live, carry: this.#carry, waiters });
    const ask = (row: BatchRow) => this.#ask(row);
    this.#steps = new BatchSteps({ ...parts, ends: this.#ends, waiters, ask });
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
      if (known && (known.body_sha256 !== bodySha256 || !sees(client, clientOfBatch(known)))) {
        const mend = "use a new id for a new batch";
        const message = `batch "${id}" exists with another body`;
        throw new ServiceError("id_conflict", message, { field: "id", mend });
      }
      if (known) return { id, created: false };
      const from = this.#carrier(submission);
      this.#expectRoom(submission.groups.length);
      const source = sourceOf(submission, from);
      const brings = submission.groups.length > 0 || open || source !== null;
      if (from && submission.carryFrom !== null && !brings) this.#carry.expectLeft(from);
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
      if (batch) this.#ends.finish(batch, "failed", error);
    });
  }

  /** Ends a batch and all that is under way for it. What it has delivered stays. Null when it does not exist. */
  cancel(id: string): Promise<BatchRow | null> {
    return this.#parts.operate(() => {
      const row = this.#parts.store.batches.byId(id);
      if (!row) return null;
      const batch = this.#live.get(row.seq);
      if (batch)
        this.#ends.finish(batch, "cancelled", errorBodyOf("cancelled", "the batch was cancelled"));
      else this.#carry.drop(row, "cancelled");
      return this.#find(id);
    });
  }

  /** Last in a tick, before its slots are filled: begins, delivers and ends what is due. */
  replenish(): void {
    for (const batch of [...this.#live.values()]) this.#steps.take(batch);
  }

  /** What a member of a group may do in RUN for its batch, and whether it may wait in its sandbox for the next one. */
  allowance(groupSeq: number): { allowance: Allowance | null; stays: boolean } {
    const { store, groups } = this.#parts;
    const seq = groups.batchOf(groupSeq);
    return allowanceIn(store, seq, seq === null ? undefined : this.#live.get(seq));
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

  /** What another client has left, and how it calls its series, is nobody else's. */
  #carrier({ carryFrom, series, client }: BatchSubmission): BatchRow | null {
    const { batches } = this.#parts.store;
    if (carryFrom !== null) {
      const row = this.#find(carryFrom, "carry_from");
      if (!sees(client, clientOfBatch(row))) throw unknownBatch(carryFrom, "carry_from");
      return this.#carry.carrier(row, "carry_from");
    }
    const last = series === null ? null : batches.lastOfSeries(series, scopeOf(client));
    return last && this.#carry.carrier(last, "series");
  }

  #find(id: string, field = "id"): BatchRow {
    const row = this.#parts.store.batches.byId(id);
    if (row) return row;
    throw unknownBatch(id, field);
  }
}

function unknownBatch(id: string, field: string): ServiceError {
  return new ServiceError("not_found", `there is no batch "${id}"`, { field });
}
