import { ServiceError } from "../errors.ts";

export type GateLimits = { maxWaiting: number; maxStreams: number };

/** One stream's place among those that may be open. */
export type StreamPlace = Disposable & {
  /** Its reader was cut, and its connection is still there: over a Unix socket nothing can close it from here. */
  linger(): void;
};

/** Counts the requests that stay open, so that clients that only wait can't take all of the service. */
export class Gate {
  readonly #limits: GateLimits;
  waiting = 0;
  streams = 0;
  /** Streams that have ended, at readers that did not take the end. */
  lingering = 0;

  constructor(limits: GateLimits) {
    this.#limits = limits;
  }

  /** For a request that waits for a job. @throws ServiceError `too_many_waiting` */
  async wait<T>(work: () => Promise<T>): Promise<T> {
    if (this.waiting >= this.#limits.maxWaiting) throw tooMany("requests wait", "max_waiting");
    this.waiting++;
    try {
      return await work();
    } finally {
      this.waiting--;
    }
  }

  /** For a stream; it counts until disposed. @throws ServiceError `too_many_waiting` */
  openStream(): StreamPlace {
    const { maxStreams } = this.#limits;
    if (this.streams >= maxStreams) throw tooMany("streams are open", "max_streams");
    if (this.lingering >= maxStreams) {
      const message = "too many streams that were cut are still connected";
      const mend = "read streams, or close their connections; the operator can raise max_streams";
      throw new ServiceError("too_many_waiting", message, { mend });
    }
    this.streams++;
    let counted: "streams" | "lingering" | null = "streams";
    const move = (to: typeof counted) => {
      if (counted === null || counted === to) return;
      this[counted]--;
      counted = to;
      if (to) this[to]++;
    };
    return { linger: () => move("lingering"), [Symbol.dispose]: () => move(null) };
  }
}

function tooMany(what: string, setting: string): ServiceError {
  const mend = `come back later; the operator can raise ${setting}`;
  return new ServiceError("too_many_waiting", `too many ${what}`, { mend });
}
