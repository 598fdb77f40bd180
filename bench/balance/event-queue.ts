import type { EngineClock } from "../../src/simulator/engine-clock.ts";

type Event = { ms: number; order: number; what: () => void; isCancelled: boolean };

/** What happens when, in virtual time. */
export class EventQueue implements EngineClock {
  readonly speed = 1;
  #nowMs = 0;
  readonly #heap: Event[] = [];
  #order = 0;

  nowMs(): number {
    return this.#nowMs;
  }

  after(ms: number, what: () => void): () => void {
    const event = this.at(this.#nowMs + ms, what);
    return () => {
      event.isCancelled = true;
    };
  }

  at(ms: number, what: () => void): Event {
    const heap = this.#heap;
    const event = { ms, order: this.#order++, what, isCancelled: false };
    let index = heap.push(event) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#before(index, parent)) break;
      this.#swap(index, parent);
      index = parent;
    }
    return event;
  }

  /** Until nothing is to happen any more. Returns when that was. */
  run(): number {
    for (let next = this.#pop(); next; next = this.#pop()) {
      if (next.isCancelled) continue;
      this.#nowMs = Math.max(this.#nowMs, next.ms);
      next.what();
    }
    return this.#nowMs;
  }

  #pop() {
    const heap = this.#heap;
    const [first] = heap;
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    heap[0] = last;
    for (let index = 0; ; ) {
      const left = 2 * index + 1;
      let least = index;
      if (left < heap.length && this.#before(left, least)) least = left;
      if (left + 1 < heap.length && this.#before(left + 1, least)) least = left + 1;
      if (least === index) return first;
      this.#swap(index, least);
      index = least;
    }
  }

  #before(a: number, b: number): boolean {
    const [one, other] = [this.#heap[a], this.#heap[b]];
    if (!one || !other) return false;
    return one.ms < other.ms || (one.ms === other.ms && one.order < other.order);
  }

  #swap(a: number, b: number): void {
    const one = this.#heap[a];
    const other = this.#heap[b];
    if (one && other) [this.#heap[a], this.#heap[b]] = [other, one];
  }
}
