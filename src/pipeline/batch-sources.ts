import { ServiceError, toErrorBody } from "../errors.ts";
import { pause } from "../lib/abortable.ts";
import { parseWithTools } from "../lib/exact-tools.ts";
import { type Line, type LinePosition, readLines } from "../lib/line-page.ts";
import type { BatchRow } from "../store/tables.ts";
import type { Batches } from "./batches.ts";
import type { GroupSubmission } from "./group-parts.ts";

/** Rows that one step takes in, so that nobody waits for it. */
const PAGE_ROWS = 50;
/** Between the attempts to read from somewhere that can't be reached now. */
const RETRY_MS = [500, 2_000, 8_000, 30_000];

/** Where a batch's rows come from, a path or URL, and how far it is read; stored with the batch. */
export type SourcePlace = LinePosition & { address: string };

/** What the sources need of the service. */
export type SourceParts = {
  batches: Batches;
  /** @throws ServiceError `source_unreachable`, which is tried again; others end the batch */
  read(address: string, offset: number, size: number, signal: AbortSignal): Promise<Uint8Array>;
  /** Checks a row of a batch with these options. @throws ServiceError */
  acceptRow(options: string, row: unknown): GroupSubmission;
  maxLineBytes: number;
};

/**
 * Reads the rows of batches from files and URLs, a page at a time, as the batches come to need them. A page and the
 * position behind it are stored together, so that a restart neither skips nor repeats a row.
 */
export class BatchSources implements Disposable {
  readonly #parts: SourceParts;
  readonly #reading = new Set<number>();
  readonly #stopped = new AbortController();

  constructor(parts: SourceParts) {
    this.#parts = parts;
    parts.batches.listen((row) => void this.#feed(row));
  }

  [Symbol.dispose](): void {
    this.#stopped.abort();
  }

  async #feed(row: BatchRow): Promise<void> {
    const { batches } = this.#parts;
    if (this.#reading.has(row.seq) || this.#stopped.signal.aborted) return;
    this.#reading.add(row.seq);
    try {
      const place: SourcePlace = JSON.parse(row.source ?? "");
      const lines = await this.#lines(place);
      const { groups, next } = this.#accept(row, place, lines);
      this.#reading.delete(row.seq);
      const source = JSON.stringify({ ...place, ...next });
      await batches.pulled(row.seq, { groups, source, ended: lines.length === 0 });
    } catch (error) {
      if (this.#stopped.signal.aborted) return;
      this.#reading.delete(row.seq);
      await batches.fail(row.seq, toErrorBody(error));
    }
  }

  async #lines(place: SourcePlace): Promise<Line[]> {
    const { read, maxLineBytes } = this.#parts;
    const { signal } = this.#stopped;
    const readAt = (offset: number, size: number) => read(place.address, offset, size, signal);
    for (let attempt = 0; ; attempt++) {
      try {
        const lines = await readLines(readAt, place, { maxLines: PAGE_ROWS, maxLineBytes });
        signal.throwIfAborted();
        return lines;
      } catch (error) {
        const waitMs = RETRY_MS[attempt];
        const mayPass = error instanceof ServiceError && error.code === "source_unreachable";
        if (!mayPass || waitMs === undefined) throw error;
        await pause(waitMs, signal);
      }
    }
  }

  /** The groups of the lines up to one that is bad, which is an error when it comes first. */
  #accept(row: BatchRow, place: SourcePlace, lines: Line[]) {
    const groups: GroupSubmission[] = [];
    let next: LinePosition = { offset: place.offset, line: place.line };
    for (const line of lines) {
      try {
        const parsed = parseLine(line.bytes);
        if (parsed !== null) groups.push(this.#parts.acceptRow(row.options, parsed.row));
      } catch (error) {
        if (!(error instanceof ServiceError)) throw error;
        if (groups.length > 0) break;
        const message = `${place.address}:${line.end.line}: ${error.message}`;
        const options = { field: "source", ...(error.mend && { mend: error.mend }), cause: error };
        throw new ServiceError(error.code, message, options);
      }
      next = line.end;
    }
    return { groups, next };
  }
}

/**
 * Null for an empty line. The error does not say what is written there: it may be none of the asker's business.
 *
 * @throws ServiceError `bad_json`
 */
function parseLine(bytes: Uint8Array): { row: unknown } | null {
  let text: string;
  try {
    text = new TextDecoder("utf-8", { fatal: true }).decode(bytes).trim();
  } catch (error) {
    throw new ServiceError("bad_json", "the line is not valid UTF-8", { cause: error });
  }
  if (text === "") return null;
  try {
    return { row: parseWithTools(text) };
  } catch (error) {
    throw new ServiceError("bad_json", "the line is not valid JSON", { cause: error });
  }
}
