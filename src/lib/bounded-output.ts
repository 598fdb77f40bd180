const NOTHING = Buffer.alloc(0);

/**
 * Keeps the first and the last bytes of a stream of any length, in at most `maxBytes` of memory.
 * Memory grows with what arrives, not with the limit.
 */
export class BoundedOutput {
  readonly #headLimit: number;
  readonly #tailLimit: number;
  #head = NOTHING;
  #headLength = 0;
  /** A ring once it is full: `#tailEnd` is where the next byte goes. */
  #tail = NOTHING;
  #tailLength = 0;
  #tailEnd = 0;
  #total = 0;

  constructor(maxBytes: number) {
    this.#headLimit = Math.ceil(maxBytes / 2);
    this.#tailLimit = Math.floor(maxBytes / 2);
  }

  get isEmpty(): boolean {
    return this.#total === 0;
  }

  get cutBytes(): number {
    return this.#total - this.#headLength - this.#tailLength;
  }

  push(bytes: Uint8Array): void {
    this.#total += bytes.length;
    const toHead = Math.min(bytes.length, this.#headLimit - this.#headLength);
    if (toHead > 0) {
      this.#head = withRoom(this.#head, this.#headLength + toHead, this.#headLimit);
      this.#head.set(bytes.subarray(0, toHead), this.#headLength);
      this.#headLength += toHead;
    }
    if (toHead < bytes.length) this.#pushTail(bytes.subarray(toHead));
  }

  /** Counts bytes as cut that somebody else has left out, between the two ends. */
  skip(bytes: number): void {
    this.#total += bytes;
  }

  #pushTail(all: Uint8Array): void {
    if (this.#tailLimit === 0) return;
    const bytes = all.subarray(Math.max(0, all.length - this.#tailLimit));
    // Below its limit the ring has not wrapped yet, so it may still be moved to a larger buffer.
    if (this.#tail.length < this.#tailLimit) {
      const wanted = Math.min(this.#tailLength + bytes.length, this.#tailLimit);
      this.#tail = withRoom(this.#tail, wanted, this.#tailLimit);
      this.#tailEnd = this.#tailLength;
    }
    const first = Math.min(bytes.length, this.#tail.length - this.#tailEnd);
    this.#tail.set(bytes.subarray(0, first), this.#tailEnd);
    this.#tail.set(bytes.subarray(first), 0);
    this.#tailEnd = (this.#tailEnd + bytes.length) % this.#tail.length;
    this.#tailLength = Math.min(this.#tailLength + bytes.length, this.#tail.length);
  }

  /** The two ends. Without a cut they are one and `tail` is empty. */
  parts(): { head: Buffer; tail: Buffer } {
    const head = this.#head.subarray(0, this.#headLength);
    if (this.#tailLength === 0) return { head, tail: NOTHING };
    const wrapped = this.#tailLength === this.#tail.length;
    const tail = wrapped
      ? Buffer.concat([this.#tail.subarray(this.#tailEnd), this.#tail.subarray(0, this.#tailEnd)])
      : this.#tail.subarray(0, this.#tailLength);
    if (this.cutBytes > 0) return { head, tail };
    return { head: Buffer.concat([head, tail]), tail: NOTHING };
  }

  /** As UTF-8, invalid bytes replaced, the cut stated; `clean` sees each end by itself. */
  text(clean: (text: string) => string = (text) => text): string {
    const { head, tail } = this.parts();
    if (this.cutBytes === 0) return clean(head.toString("utf8"));
    const cut = `\n[... ${this.cutBytes} bytes cut ...]\n`;
    return clean(head.toString("utf8")) + cut + clean(tail.toString("utf8"));
  }
}

function withRoom(buffer: Buffer<ArrayBuffer>, length: number, limit: number): Buffer<ArrayBuffer> {
  if (buffer.length >= length) return buffer;
  const larger = Buffer.alloc(Math.min(limit, Math.max(length, buffer.length * 2, 1024)));
  larger.set(buffer);
  return larger;
}
