const TICK_MS = 100;
/** The worst of as many ticks is told: 15 s, the usual interval of a scrape. */
const WINDOW = 150;

/** How late the event loop is, by a timer that says when it was to come. */
export class EventLoopLag implements Disposable {
  readonly #late: number[] = [];
  readonly #timer: Timer;
  #expectedMs = performance.now() + TICK_MS;

  constructor() {
    this.#timer = setInterval(() => this.#tick(), TICK_MS).unref();
  }

  /** Units: milliseconds. */
  get worstMs(): number {
    return Math.max(0, ...this.#late);
  }

  [Symbol.dispose](): void {
    clearInterval(this.#timer);
  }

  #tick(): void {
    const nowMs = performance.now();
    this.#late.push(nowMs - this.#expectedMs);
    if (this.#late.length > WINDOW) this.#late.shift();
    this.#expectedMs = nowMs + TICK_MS;
  }
}
