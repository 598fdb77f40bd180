/** Each message costs the main thread a transaction; each record in it the other work of this thread some milliseconds. */
const RECORDS_A_TURN = 8;

/**
 * When stages that have ended may write their records: a few in each turn of the event loop, and none in the one in
 * which they ask. So many that end together have told so before the first record is written.
 */
export class RecordTurns {
  /** The last turn that somebody waits for, and how many more may. */
  #turn: { begun: Promise<void>; room: number } | null = null;

  /** Resolves when it is the caller's turn. */
  next(): Promise<void> {
    const turn = this.#turn && this.#turn.room > 0 ? this.#turn : this.#after(this.#turn?.begun);
    turn.room--;
    return turn.begun;
  }

  #after(before = Promise.resolve()) {
    const begun = before.then(() => new Promise<void>((resolve) => setImmediate(resolve)));
    const turn = { begun, room: RECORDS_A_TURN };
    this.#turn = turn;
    begun.then(() => {
      if (this.#turn === turn) this.#turn = null;
    });
    return turn;
  }
}
