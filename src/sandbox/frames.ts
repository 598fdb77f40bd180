/** The supervisor's wire format; `supervisor.c` has the same numbers. */
export const FRAME = {
  spawn: 1,
  data: 2,
  endOfInput: 3,
  signal: 4,
  ttyReset: 5,
  credit: 6,
  ping: 7,
  ready: 16,
  started: 17,
  failed: 18,
  stdout: 19,
  stderr: 20,
  exited: 21,
  consumed: 22,
  pong: 23,
} as const;

export const STREAM_KIND = {
  null: 0,
  pipes: 1,
  terminal: 2,
  readFile: 3,
  writeFile: 4,
  readTree: 5,
  writeTree: 6,
  logged: 7,
  alone: 8,
} as const;
export type StreamKind = keyof typeof STREAM_KIND;

/** Whom a signal goes to: the command's own group, or what runs in the terminal's foreground. */
export const SIGNAL_SCOPE = { leader: 0, foreground: 1, foregroundButLeader: 2 } as const;
export type SignalScope = keyof typeof SIGNAL_SCOPE;

export const PROTOCOL_VERSION = 1;
export const MAX_SPAWN_BYTES = 262_144;
const MAX_ARGUMENTS = 1024;
const HEADER = 9;
const NOTHING = Buffer.alloc(0);

export function encodeFrame(type: number, stream: number, payload?: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER + (payload?.length ?? 0));
  writeFrame(frame, 0, type, stream, payload);
  return frame;
}

/** What is typed into a terminal whose modes are set back first. */
export function encodeTyped(stream: number, text: Uint8Array): Buffer {
  const frames = Buffer.allocUnsafe(2 * HEADER + text.length);
  writeFrame(frames, 0, FRAME.ttyReset, stream);
  writeFrame(frames, HEADER, FRAME.data, stream, text);
  return frames;
}

function writeFrame(to: Buffer, at: number, type: number, stream: number, payload?: Uint8Array) {
  to.writeUInt32LE(payload?.length ?? 0, at);
  to.writeUInt8(type, at + 4);
  to.writeUInt32LE(stream, at + 5);
  if (payload) to.set(payload, at + HEADER);
}

export function encodeNumbers(type: number, stream: number, ...numbers: number[]): Buffer {
  const payload = Buffer.allocUnsafe(4 * numbers.length);
  for (const [i, number] of numbers.entries()) payload.writeUInt32LE(number, 4 * i);
  return encodeFrame(type, stream, payload);
}

export type Spawn = {
  kind: StreamKind;
  /** Bytes of output that may be on their way unread. */
  window: number;
  /** Of the file kinds: the most bytes to read, or the mode to write with. */
  argument?: number;
  cwd: string;
  argv: string[];
  env: Record<string, string>;
};

/** Null: too long for one frame, or with a zero byte, which no path or argument can have. */
export function encodeSpawn(stream: number, spawn: Spawn): Buffer | null {
  const env = Object.entries(spawn.env).map(([name, value]) => `${name}=${value}`);
  const strings = [spawn.cwd, ...spawn.argv, ...env];
  if (spawn.argv.length > MAX_ARGUMENTS || env.length > MAX_ARGUMENTS) return null;
  if (strings.some((text) => text.includes("\0"))) return null;
  const head = Buffer.alloc(17);
  head.writeUInt8(STREAM_KIND[spawn.kind], 0);
  head.writeUInt32LE(spawn.window, 1);
  head.writeBigUInt64LE(BigInt(spawn.argument ?? 0), 5);
  head.writeUInt16LE(spawn.argv.length, 13);
  head.writeUInt16LE(env.length, 15);
  const payload = Buffer.concat([head, Buffer.from(`${strings.join("\0")}\0`)]);
  return payload.length > MAX_SPAWN_BYTES ? null : encodeFrame(FRAME.spawn, stream, payload);
}

/** Cuts a stream of bytes into frames. A payload is only valid during the call. */
export class FrameDecoder {
  #rest: Buffer = NOTHING;

  /** Nothing of a frame has been taken off the socket that its successor would miss. */
  get atBoundary(): boolean {
    return this.#rest.length === 0;
  }

  push(chunk: Buffer, take: (type: number, stream: number, payload: Buffer) => void): void {
    const bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    let at = 0;
    while (bytes.length - at >= HEADER) {
      const end = at + HEADER + bytes.readUInt32LE(at);
      if (bytes.length < end) break;
      const type = bytes.readUInt8(at + 4);
      take(type, bytes.readUInt32LE(at + 5), bytes.subarray(at + HEADER, end));
      at = end;
    }
    this.#rest = at === bytes.length ? NOTHING : Buffer.from(bytes.subarray(at));
  }
}
