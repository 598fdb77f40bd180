/** `isTraced`: the shell prints what it runs (`set -x`). */
export type Marker = { status: number; isTraced?: true; cwd: string; python: string };

const START = "\x1b]777;";
const MAX_MARKER_BYTES = 8192;
const NOTHING = Buffer.alloc(0);

/** Finds the end of a command in what a shell prints, looking at every byte once. */
export class MarkerScanner {
  readonly #emit: (bytes: Buffer) => void;
  #prefix: Buffer | null = null;
  /** The end of what came so far, where it may be the beginning of a marker. */
  #held: Buffer = NOTHING;

  constructor(emit: (bytes: Buffer) => void) {
    this.#emit = emit;
  }

  expect(nonce: string): void {
    this.#prefix = Buffer.from(`${START}${nonce};`);
  }

  /** Hands on what is output; the marker, if this chunk completes it, is taken out. */
  push(chunk: Buffer): Marker | null {
    const prefix = this.#prefix;
    const bytes = this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]);
    this.#held = NOTHING;
    if (prefix === null) {
      this.#emit(bytes);
      return null;
    }
    const at = bytes.indexOf(prefix);
    if (at < 0) {
      this.#hold(bytes, possibleStart(bytes, prefix));
      return null;
    }
    const found = parse(bytes.subarray(at + prefix.length));
    if (found === null) {
      // Incomplete so far; endless would be a lie.
      this.#hold(bytes, bytes.length - at > MAX_MARKER_BYTES ? bytes.length : at);
      return null;
    }
    this.#prefix = null;
    if (at > 0) this.#emit(bytes.subarray(0, at));
    const end = at + prefix.length + found.length;
    if (end < bytes.length) this.#emit(bytes.subarray(end));
    return found.marker;
  }

  #hold(bytes: Buffer, from: number): void {
    if (from > 0) this.#emit(bytes.subarray(0, from));
    if (from < bytes.length) this.#held = Buffer.from(bytes.subarray(from));
  }
}

/** Where the last bytes match the beginning of `prefix`. */
function possibleStart(bytes: Buffer, prefix: Buffer): number {
  const first = Math.max(0, bytes.length - prefix.length + 1);
  for (let at = bytes.indexOf(0x1b, first); at >= 0; at = bytes.indexOf(0x1b, at + 1)) {
    if (prefix.subarray(0, bytes.length - at).equals(bytes.subarray(at))) return at;
  }
  return bytes.length;
}

/** `status options NUL cwd NUL python NUL`, such as `0himBHs NUL / NUL NUL` */
function parse(bytes: Buffer): { marker: Marker; length: number } | null {
  const statusEnd = bytes.indexOf(0);
  const cwdEnd = bytes.indexOf(0, statusEnd + 1);
  const end = bytes.indexOf(0, cwdEnd + 1);
  if (statusEnd < 0 || cwdEnd < statusEnd || end < cwdEnd) return null;
  const first = bytes.toString("latin1", 0, statusEnd);
  const cwd = bytes.toString("utf8", statusEnd + 1, cwdEnd);
  const python = bytes.toString("utf8", cwdEnd + 1, end);
  const isTraced = first.includes("x") && { isTraced: true as const };
  return {
    marker: { status: Number.parseInt(first, 10), ...isTraced, cwd, python },
    length: end + 1,
  };
}
