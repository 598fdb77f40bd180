import { abortable } from "./abortable.ts";

/** At most so many at once; the others wait in the order in which they came. */
export class Permits {
  readonly #waiting: (() => void)[] = [];
  #free: number;

  constructor(count: number) {
    this.#free = count;
  }

  async take(signal: AbortSignal): Promise<Disposable> {
    signal.throwIfAborted();
    if (this.#free > 0) this.#free--;
    else await this.#turn(signal);
    let held = true;
    return {
      [Symbol.dispose]: () => {
        if (held) this.#give();
        held = false;
      },
    };
  }

  async #turn(signal: AbortSignal): Promise<void> {
    const turn = Promise.withResolvers<void>();
    this.#waiting.push(turn.resolve);
    try {
      await abortable(turn.promise, signal);
    } catch (error) {
      const at = this.#waiting.indexOf(turn.resolve);
      if (at >= 0) this.#waiting.splice(at, 1);
      else this.#give();
      throw error;
    }
  }

  #give(): void {
    const next = this.#waiting.shift();
    if (next) next();
    else this.#free++;
  }
}
