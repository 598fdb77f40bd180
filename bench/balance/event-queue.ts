/** What happens when, in virtual time. */
export class EventQueue {
  #nowMs = 0;
  readonly #heap: { ms: number; order: number; what: () => void }[] = [];
  #order = 0;

  nowMs(): number {
    return this.#nowMs;
  }

  at(ms: number, what: () => void): void {
    const heap = this.#heap;
    let index = heap.push({ ms, order: this.#order++, what }) - 1;
    while (index > 0) {
      const parent = (index - 1) >> 1;
      if (!this.#before(index, parent)) break;
      this.#swap(index, parent);
      index = parent;
    }
  }

  /** Until nothing is to happen any more. Returns when that was. */
  run(): number {
    for (let next = this.#pop(); next; next = this.#pop()) {
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
