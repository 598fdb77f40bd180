const FIRST_CAPACITY = 1024;

/** Token ids that grow at the end, without copying what is there at each turn. */
export class TokenBuffer {
  #ids = new Int32Array(FIRST_CAPACITY);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  /** The ids, to be read before anything is appended. */
  get ids(): Int32Array {
    return this.#ids.subarray(0, this.#length);
  }

  append(ids: ArrayLike<number>): void {
    const length = this.#length + ids.length;
    if (length > this.#ids.length) {
      const grown = new Int32Array(Math.max(length, 2 * this.#ids.length));
      grown.set(this.#ids.subarray(0, this.#length));
      this.#ids = grown;
    }
    this.#ids.set(ids, this.#length);
    this.#length = length;
  }

  truncate(length: number): void {
    this.#length = Math.min(this.#length, length);
  }

  /** Whether all ids of `start` are at the start of this one. */
  startsWith(start: TokenBuffer): boolean {
    if (start.length > this.length) return false;
    const bytes = (ids: Int32Array) => Buffer.from(ids.buffer, ids.byteOffset, 4 * start.length);
    return bytes(this.ids).equals(bytes(start.ids));
  }
}

/** As `Array.from`, which takes several times as long, and for the first few arrays of a thread much longer. */
export function numbersOf(ids: Int32Array): number[] {
  const numbers: number[] = [];
  for (let at = 0; at < ids.length; at++) numbers.push(ids[at] as number);
  return numbers;
}
