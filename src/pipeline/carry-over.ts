import { errorBodyOf, ServiceError } from "../errors.ts";
import type { BatchRow } from "../store/tables.ts";
import type { BatchParts } from "./live-batch.ts";

type CarryParts = Pick<BatchParts, "store" | "groups" | "clock" | "operate" | "settings">;

const WHY = { ended: "the batch is over", cancelled: "the batch was cancelled" };

/** What batches that are over have left for others. All but the constructor and `stop` inside a tick. */
export class CarryOver {
  readonly #parts: CarryParts;
  readonly #expiries = new Map<number, Timer>();

  constructor(parts: CarryParts) {
    this.#parts = parts;
    for (const row of parts.store.batches.carrying()) this.expireLater(row, true);
  }

  stop(): void {
    for (const timer of this.#expiries.values()) clearTimeout(timer);
  }

  /** Ends what a batch has under way. */
  endBegun(row: BatchRow, state: "ended" | "cancelled"): void {
    const { store, groups } = this.#parts;
    const begun = store.batches.begun(row.seq).filter(({ finished_ms }) => finished_ms === null);
    for (const { seq } of begun) groups.end(seq, state, WHY[state]);
  }

  /** Ends what a batch has not begun. */
  endWaiting(row: BatchRow, state: "ended" | "cancelled"): void {
    const { store, clock } = this.#parts;
    const error = errorBodyOf(state === "cancelled" ? "cancelled" : "not_needed", WHY[state]);
    store.batches.endWaiting(row.seq, state, JSON.stringify(error), clock.nowMs());
  }

  /** Ends every group of a batch that is not over. */
  drop(row: BatchRow, state: "ended" | "cancelled"): void {
    this.endBegun(row, state);
    this.endWaiting(row, state);
    clearTimeout(this.#expiries.get(row.seq));
    this.#expiries.delete(row.seq);
  }

  /**
   * What no other batch has taken over in time is ended.
   *
   * @param anew the time begins now: while no service ran nobody could take over, and the clock may have been set
   */
  expireLater(row: BatchRow, anew = false): void {
    const { settings, clock, operate, store } = this.#parts;
    const limitMs = settings.carryLimitMs;
    const leftMs = (row.finished_ms ?? 0) + limitMs - clock.nowMs();
    const inMs = anew ? limitMs : Math.min(limitMs, Math.max(0, leftMs));
    const expire = () => {
      this.#expiries.delete(row.seq);
      operate(() => this.drop(row, "ended"));
    };
    if (store.batches.carries(row.seq)) {
      this.#expiries.set(row.seq, setTimeout(expire, inMs));
    }
  }

  /** @throws ServiceError `invalid_field` as long as it runs */
  carrier(row: BatchRow, field: string): BatchRow {
    if (row.state !== "running") return row;
    throw new ServiceError("invalid_field", `batch "${row.id}" is still running`, {
      field,
      mend: "wait for its end, or cancel it",
    });
  }

  /** @throws ServiceError `invalid_field` where it has left nothing that another batch could go on with */
  expectLeft(from: BatchRow): void {
    if (this.#parts.store.batches.leaves(from.seq)) return;
    const message = `carry_from: batch "${from.id}" has left nothing to go on with`;
    throw new ServiceError("invalid_field", message, {
      field: "carry_from",
      mend: 'give instances; a batch leaves what is unfinished where it says "unfinished": "keep", and to one other',
    });
  }

  /** Its unfinished groups, and informative ones that it did not need, are the new batch's first ones. */
  adopt(from: BatchRow, to: BatchRow): void {
    const { store, groups } = this.#parts;
    for (const { seq } of store.batches.begun(from.seq)) groups.move(seq, to.seq);
    store.batches.adopt(from.seq, to.seq);
    clearTimeout(this.#expiries.get(from.seq));
    this.#expiries.delete(from.seq);
  }
}
