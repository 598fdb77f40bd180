import { readSync, writeSync } from "node:fs";

/** A part of a file. Units: bytes. */
export type Span = { start: number; end: number };

const COPY_BYTES = 1 << 20;

/** All up to `size` but `spans`. */
export function complement(spans: Span[], size: number): Span[] {
  const cut = spans.toSorted((a, b) => a.start - b.start);
  const starts = [0, ...cut.map(({ end }) => end)];
  const ends = [...cut.map(({ start }) => start), size];
  return starts.map((start, index) => ({ start, end: ends[index] as number }));
}

/** Appends parts of one file to another. */
export function copy(from: number, to: number, spans: Span[]): void {
  const buffer = Buffer.alloc(COPY_BYTES);
  for (const { start, end } of spans) {
    for (let at = start; at < end; ) {
      const read = readSync(from, buffer, 0, Math.min(buffer.length, end - at), at);
      if (read === 0) throw new Error("the file became shorter");
      for (let done = 0; done < read; ) done += writeSync(to, buffer, done, read - done);
      at += read;
    }
  }
}
