/**
 * Cuts an event stream into its messages, wherever its chunks are cut. Comments, names and ids of events are
 * left out.
 */
export class EventStream {
  readonly #onMessage: (data: string) => void;
  readonly #decoder = new TextDecoder("utf-8", { fatal: true });
  /** Of the line that has not ended yet. */
  #parts: string[] = [];
  #data: string[] = [];

  constructor(onMessage: (data: string) => void) {
    this.#onMessage = onMessage;
  }

  /** @throws TypeError for bytes that are no UTF-8, and whatever `onMessage` throws. */
  push(chunk: Uint8Array): void {
    const text = this.#decoder.decode(chunk, { stream: true });
    let from = 0;
    for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", from)) {
      const line = this.#parts.join("") + text.slice(from, end);
      this.#parts = [];
      this.#line(line.endsWith("\r") ? line.slice(0, -1) : line);
      from = end + 1;
    }
    if (from < text.length) this.#parts.push(text.slice(from));
  }

  #line(line: string): void {
    if (line.startsWith("data:")) {
      this.#data.push(line.slice(line[5] === " " ? 6 : 5));
      return;
    }
    if (line !== "" || this.#data.length === 0) return;
    const message = this.#data.join("\n");
    this.#data = [];
    this.#onMessage(message);
  }
}
