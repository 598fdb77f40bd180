import { ServiceError } from "../errors.ts";
import type { ControlChannel } from "./control-channel.ts";
import {
  encodeFrame,
  encodeSpawn,
  encodeTyped,
  FRAME,
  SIGNAL_SCOPE,
  type SignalScope,
  type Spawn,
} from "./frames.ts";

/** Output that may be on its way unread. The supervisor allows as much input. */
const OUTPUT_WINDOW = 262_144;
const INPUT_WINDOW = 65_536;
const INPUT_CHUNK = 16_384;

export type Exit = {
  code: number | null;
  signal: number | null;
  /** Of the processor, by it and by all that it waited for; of a command that ran alone, by all that it started. */
  cpuMs: number;
  /** Of a command that ran alone: whether the sandbox has as much room as before. */
  clean: boolean;
};
/** Answers `later`: the bytes count as unread until `taken` is called for them, so that no more come than that. */
export type OutputSink = (bytes: Buffer, isStderr: boolean) => unknown;

/** The process could not be started, or the file not be opened; `errno` says why. */
export class StartError extends Error {
  constructor(
    readonly errno: number,
    what: string,
  ) {
    super(`${what}: errno ${errno}`);
    this.name = "StartError";
  }
}

/** One process of the supervisor's. Both promises reject with `sandbox_died` when that goes away. */
export class ProcessStream {
  readonly started: Promise<void>;
  readonly exited: Promise<Exit>;
  readonly #channel: ControlChannel;
  readonly #id: number;
  readonly #start = Promise.withResolvers<void>();
  readonly #exit = Promise.withResolvers<Exit>();
  #sink: OutputSink;
  readonly #onClosed = () => this.#fail(this.#channel.closed.reason);
  readonly #input: Uint8Array[] = [];
  #inputWindow = INPUT_WINDOW;
  #inputEnds = false;
  #unreturned = 0;
  #untaken = 0;
  #sent: (() => void) | null = null;
  #open = true;

  /**
   * @param sink sees bytes that are only valid during the call.
   * @param id only for a stream that another thread must find again.
   */
  constructor(
    channel: ControlChannel,
    spawn: Omit<Spawn, "window">,
    sink: OutputSink,
    id = channel.newStream(),
  ) {
    this.#channel = channel;
    this.#id = id;
    this.#sink = sink;
    this.started = this.#start.promise;
    this.exited = this.#exit.promise;
    // Who awaits neither must not crash the thread.
    this.started.catch(() => {});
    this.exited.catch(() => {});
    const frame = encodeSpawn(id, { ...spawn, window: OUTPUT_WINDOW });
    if (frame === null) this.#refuse(spawn.argv[0] ?? "");
    else if (channel.closed.aborted) this.#fail(channel.closed.reason);
    else this.#send(frame);
  }

  #send(frame: Uint8Array): void {
    this.#channel.closed.addEventListener("abort", this.#onClosed);
    this.#channel.listen(this.#id, (type, payload) => this.#take(type, payload));
    this.#channel.send(frame);
  }

  get open(): boolean {
    return this.#open;
  }

  write(bytes: Uint8Array): void {
    if (bytes.length > 0) this.#input.push(bytes);
    this.#pump();
  }

  /** Resolves when all input is on its way, or nobody wants it any more. For one caller at a time. */
  sent(): Promise<void> {
    if (this.#input.length === 0 || !this.#open) return Promise.resolve();
    return new Promise((resolve) => (this.#sent = resolve));
  }

  /** Of bytes that the sink took for `later`. */
  taken(bytes: number): void {
    this.#untaken -= bytes;
    this.#returnWindow(bytes);
  }

  /** Kills it, and hears no more of it; what it has printed is dropped, so that its end can come. */
  abandon(): void {
    if (!this.#open) return;
    this.#sink = () => {};
    this.taken(this.#untaken);
    this.signal(9);
  }

  endInput(): void {
    this.#inputEnds = true;
    this.#pump();
  }

  /** For a stream that another thread has started. */
  static signalById(channel: ControlChannel, id: number, number: number): void {
    channel.sendNumbers(FRAME.signal, id, number, SIGNAL_SCOPE.leader);
  }

  signal(number: number, scope: SignalScope = "leader"): void {
    this.#channel.sendNumbers(FRAME.signal, this.#id, number, SIGNAL_SCOPE[scope]);
  }

  /** Resets the terminal and types `line` into it, in one write. */
  typeAfterReset(line: string): void {
    const text = Buffer.from(line);
    this.#inputWindow -= text.length;
    this.#channel.send(encodeTyped(this.#id, text));
  }

  #refuse(name: string): void {
    const problem = `the arguments and environment of ${name.slice(0, 80)} are too long or hold a zero byte`;
    this.#fail(new ServiceError("instance_invalid", problem));
  }

  #take(type: number, payload: Buffer): void {
    if (type === FRAME.stdout || type === FRAME.stderr) {
      const later = this.#sink(payload, type === FRAME.stderr) === "later";
      if (later) this.#untaken += payload.length;
      else this.#returnWindow(payload.length);
    } else if (type === FRAME.started) {
      this.#start.resolve();
    } else if (type === FRAME.failed) {
      this.#fail(new StartError(payload.readUInt32LE(0), "start failed"));
    } else if (type === FRAME.consumed) {
      this.#inputWindow += payload.readUInt32LE(0);
      this.#pump();
    } else if (type === FRAME.exited) {
      const code = payload.readUInt32LE(0);
      const signal = payload.readUInt32LE(4);
      const used = { cpuMs: payload.readUInt32LE(8), clean: payload.readUInt32LE(12) === 1 };
      this.#close();
      const how = signal === 0 ? { code, signal: null } : { code: null, signal };
      this.#exit.resolve({ ...how, ...used });
    }
  }

  /** In large steps and not within the read: a flood then costs the thread's other work a turn each. */
  #returnWindow(bytes: number): void {
    const before = this.#unreturned;
    this.#unreturned += bytes;
    if (before >= OUTPUT_WINDOW / 4 || this.#unreturned < OUTPUT_WINDOW / 4) return;
    setImmediate(() => {
      if (this.#open) this.#channel.sendNumbers(FRAME.credit, this.#id, this.#unreturned);
      this.#unreturned = 0;
    });
  }

  #pump(): void {
    while (this.#open && this.#inputWindow > 0) {
      const next = this.#input[0];
      if (next === undefined) break;
      const chunk = next.subarray(0, Math.min(this.#inputWindow, INPUT_CHUNK));
      this.#channel.send(encodeFrame(FRAME.data, this.#id, chunk));
      this.#inputWindow -= chunk.length;
      if (chunk.length < next.length) this.#input[0] = next.subarray(chunk.length);
      else this.#input.shift();
    }
    if (this.#input.length > 0) return;
    this.#sent?.();
    this.#sent = null;
    if (!this.#inputEnds) return;
    this.#inputEnds = false;
    this.#channel.send(encodeFrame(FRAME.endOfInput, this.#id));
  }

  #fail(error: unknown): void {
    this.#close();
    this.#start.reject(error);
    this.#exit.reject(error);
  }

  #close(): void {
    this.#open = false;
    this.#input.length = 0;
    this.#sent?.();
    this.#channel.unlisten(this.#id);
    this.#channel.closed.removeEventListener("abort", this.#onClosed);
  }
}
