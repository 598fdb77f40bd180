import { createHmac } from "node:crypto";
import type { Clock } from "../lib/clock.ts";
import type { DueCallback } from "../store/callbacks.ts";
import type { Store } from "../store/store.ts";
import type { JobRow } from "../store/tables.ts";
import type { Log } from "../telemetry/log.ts";

/** How often it is looked whether a message is due. */
const SWEEP_MS = 200;
const AT_ONCE = 16;
const FIRST_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 600_000;
/** With the waits between them, the last attempt comes about an hour after the first. */
const MAX_ATTEMPTS = 14;
/** How long what came of an attempt waits to be written down, where that can't be done at once. */
const BOOK_AGAIN_MS = 1_000;

type CallbackParts = {
  store: Store;
  clock: Clock;
  log: Log;
  secret: string;
  /** What the client is told: the rollout as JSON. */
  render(row: JobRow): string;
  /** Sends one message and gives the status of the answer. */
  post(url: string, headers: Record<string, string>, body: string): Promise<number>;
};

/**
 * Tells clients that a rollout is over. What is to be told is a row that the end of the job wrote, so it survives
 * a crash, and a client may hear of one end twice, but not never. A client that does not answer with 2xx is
 * asked again, later each time, and given up in the end; `GET` has the result all the same.
 */
export class Callbacks {
  readonly #parts: CallbackParts;
  readonly #underWay = new Set<number>();
  readonly #timer: Timer;
  #stopped = false;
  delivered = 0;
  failed = 0;

  constructor(parts: CallbackParts) {
    this.#parts = parts;
    this.#timer = setInterval(() => this.#sweep(), SWEEP_MS);
  }

  /** What is under way is not booked any more, and sent again by the next start. */
  stop(): void {
    this.#stopped = true;
    clearInterval(this.#timer);
  }

  #sweep(): void {
    const { store, clock } = this.#parts;
    const free = AT_ONCE - this.#underWay.size;
    if (free <= 0) return;
    // Those under way are still due, so that many more have to be looked at.
    for (const due of store.callbacks.due(clock.nowMs(), AT_ONCE + free)) {
      if (this.#underWay.has(due.seq) || this.#underWay.size >= AT_ONCE) continue;
      this.#underWay.add(due.seq);
      this.#deliver(due)
        .catch((error: Error) => this.#parts.log.error("a callback", { problem: error.message }))
        .finally(() => this.#underWay.delete(due.seq));
    }
  }

  async #deliver({ seq, url, attempts }: DueCallback): Promise<void> {
    const { store, clock, log, post, render, secret } = this.#parts;
    const row = store.callbacks.row(seq);
    if (!row) return;
    const body = render(row);
    await store.durable();
    const headers = signedHeaders(secret, row.id, body, clock.nowMs());
    const problem = await post(url, headers, body).then(
      (status) => (status >= 200 && status < 300 ? null : `HTTP ${status}`),
      (error: Error) => error.message,
    );
    if (this.#stopped) return;
    const tried = attempts + 1;
    const over = problem === null || tried >= MAX_ATTEMPTS;
    await this.#book(() => {
      if (over) store.callbacks.remove(seq);
      else store.callbacks.postpone(seq, tried, clock.nowMs() + waitMs(tried));
    });
    if (problem === null) this.delivered++;
    else if (over) {
      this.failed++;
      log.warn("a callback was given up", { job: row.id, attempts: tried, problem });
    }
  }

  /** Until it is written the message counts as under way: on a full disk each sweep would send it again. */
  async #book(write: () => void): Promise<void> {
    while (!this.#stopped) {
      try {
        return this.#parts.store.transaction(write);
      } catch (error) {
        const problem = (error as Error).message;
        this.#parts.log.error("a callback can't be booked", { problem });
        await Bun.sleep(BOOK_AGAIN_MS);
      }
    }
  }
}

/** Clients that were away together are not all asked at once again. */
function waitMs(attempts: number): number {
  const fullMs = Math.min(FIRST_WAIT_MS * 2 ** (attempts - 1), LONGEST_WAIT_MS);
  return Math.round(fullMs * (0.75 + Math.random() / 2));
}

/** The signature covers the time, so that an old message can't be sent again by someone else. */
function signedHeaders(secret: string, id: string, body: string, nowMs: number) {
  const time = Math.floor(nowMs / 1000);
  const mac = createHmac("sha256", secret).update(`${time}.${body}`).digest("hex");
  return {
    "content-type": "application/json",
    "user-agent": "rolloutd",
    "rolloutd-rollout": id,
    "rolloutd-signature": `t=${time},v1=${mac}`,
  };
}
