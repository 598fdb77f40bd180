import { ServiceError } from "../errors.ts";

export type GateLimits = { maxWaiting: number; maxStreams: number };

/** Counts the requests that stay open, so that clients that only wait can't take all of the service. */
export class Gate {
  readonly #limits: GateLimits;
  waiting = 0;
  streams = 0;

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
  openStream(): Disposable {
    if (this.streams >= this.#limits.maxStreams) throw tooMany("streams are open", "max_streams");
    this.streams++;
    let open = true;
    return {
      [Symbol.dispose]: () => {
        if (open) this.streams--;
        open = false;
      },
    };
  }
}

function tooMany(what: string, setting: string): ServiceError {
  const mend = `come back later; the operator can raise ${setting}`;
  return new ServiceError("too_many_waiting", `too many ${what}`, { mend });
}
