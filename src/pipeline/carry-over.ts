import { errorBodyOf, ServiceError } from "../errors.ts";
import type { BatchRow } from "../store/tables.ts";
import type { BatchParts } from "./live-batch.ts";

type CarryParts = Pick<BatchParts, "store" | "groups" | "clock" | "operate" | "settings">;

/** What batches that are over have left for others. All but the constructor and `stop` inside a tick. */
export class CarryOver {
  readonly #parts: CarryParts;
  readonly #expiries = new Map<number, Timer>();

  constructor(parts: CarryParts) {
    this.#parts = parts;
    for (const row of parts.store.batches.carrying()) this.expireLater(row);
  }

  stop(): void {
    for (const timer of this.#expiries.values()) clearTimeout(timer);
  }

  /** Ends every group of a batch that is not over. */
  drop(row: BatchRow, state: "ended" | "cancelled"): void {
    const { store, groups, clock } = this.#parts;
    const why = state === "cancelled" ? "the batch was cancelled" : "the batch is over";
    const begun = store.batches.begun(row.seq).filter(({ finished_ms }) => finished_ms === null);
    for (const { seq } of begun) groups.end(seq, state, why);
    const error = errorBodyOf(state === "cancelled" ? "cancelled" : "not_needed", why);
    store.batches.endWaiting(row.seq, state, JSON.stringify(error), clock.nowMs());
    clearTimeout(this.#expiries.get(row.seq));
    this.#expiries.delete(row.seq);
  }

  /** What no other batch has taken over in time is ended. */
  expireLater(row: BatchRow): void {
    const { settings, clock, operate, store } = this.#parts;
    const limitMs = settings.carryLimitMs;
    const leftMs = (row.finished_ms ?? 0) + limitMs - clock.nowMs();
    // Before a restart the clock may have been ahead.
    const inMs = Math.min(limitMs, Math.max(0, leftMs));
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

  /** Its unfinished groups, and informative ones that it did not need, are the new batch's first ones. */
  adopt(from: BatchRow, to: BatchRow): void {
    const { store, groups } = this.#parts;
    for (const { seq } of store.batches.begun(from.seq)) groups.move(seq, to.seq);
    store.batches.adopt(from.seq, to.seq);
    clearTimeout(this.#expiries.get(from.seq));
    this.#expiries.delete(from.seq);
  }
}
