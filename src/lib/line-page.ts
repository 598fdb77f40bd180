import { ServiceError } from "../errors.ts";

/** Reads at most `size` bytes from `offset` on; none at the end, and only there. */
export type ReadAt = (offset: number, size: number) => Promise<Uint8Array>;

/** How far a text is read: bytes, and whole lines. */
export type LinePosition = { offset: number; line: number };

export type Line = { bytes: Uint8Array; end: LinePosition };

const FIRST_READ_BYTES = 256 * 1024;
const NEWLINE = 0x0a;

/**
 * The next lines of a text that is too large to be read at once; none when it is over. The last one may lack its
 * newline.
 *
 * @throws ServiceError `invalid_field` for a line that is too long
 */
export async function readLines(
  read: ReadAt,
  from: LinePosition,
  { maxLines, maxLineBytes }: { maxLines: number; maxLineBytes: number },
): Promise<Line[]> {
  for (let size = Math.min(FIRST_READ_BYTES, maxLineBytes + 1); ; size *= 2) {
    const asked = Math.min(size, maxLineBytes + 1);
    const bytes = await read(from.offset, asked);
    const lines = wholeLines(bytes, from, maxLines);
    if (lines.length > 0 || bytes.length === 0) return lines;
    const isOver = (await read(from.offset + bytes.length, 1)).length === 0;
    if (isOver && bytes.length <= maxLineBytes) {
      const end = { offset: from.offset + bytes.length, line: from.line + 1 };
      return [{ bytes, end }];
    }
    if (asked > maxLineBytes) {
      const message = `line ${from.line + 1} is longer than ${maxLineBytes} bytes`;
      throw new ServiceError("invalid_field", message, { field: "source" });
    }
  }
}

function wholeLines(bytes: Uint8Array, from: LinePosition, maxLines: number): Line[] {
  const lines: Line[] = [];
  for (let begin = 0; lines.length < maxLines; ) {
    const end = bytes.indexOf(NEWLINE, begin);
    if (end < 0) break;
    const position = { offset: from.offset + end + 1, line: from.line + lines.length + 1 };
    lines.push({ bytes: bytes.subarray(begin, end), end: position });
    begin = end + 1;
  }
  return lines;
}
