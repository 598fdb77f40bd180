import type { Socket, SocketHandler, UnixSocketOptions } from "bun";
import { ServiceError } from "../errors.ts";
import { atMost } from "../lib/abortable.ts";
import { duplicateFd } from "../lib/libc.ts";
import { encodeFrame, encodeNumbers, FRAME, FrameDecoder } from "./frames.ts";

/** A supervisor that takes longer is stuck, and so will be whoever attaches next. */
const DETACH_MS = 5000;

/** A supervisor does nothing that can block, so that one that is silent for so many beats is stopped. */
const BEAT_MS = 1000;
const PING_AFTER_BEATS = 3;
const SILENT_BEATS = 12;

export type FrameHandler = (type: number, payload: Buffer) => void;

/**
 * One thread's end of a supervisor's socket, over a descriptor of its own: closing it leaves the
 * sandbox's lifeline as it is. One thread at a time.
 */
export class ControlChannel {
  readonly #closed = new AbortController();
  readonly #decoder = new FrameDecoder();
  readonly #handlers = new Map<number, FrameHandler>();
  readonly #unsent: Uint8Array[] = [];
  #socket: Socket | null = null;
  #leaving: (() => void) | null = null;
  #beat: Timer | null = null;
  #silentBeats = 0;
  /** A random start, so that no stream is taken for one of the thread that was attached before. */
  #nextStream = 0x1000 + Math.floor(Math.random() * 0x7fff_0000);

  /** @throws ServiceError `sandbox_died` if the socket is gone. */
  static async open(fd: number): Promise<ControlChannel> {
    const channel = new ControlChannel();
    const own = duplicateFd(fd);
    if (own === null) throw died("its socket is closed");
    const socket: SocketHandler = {
      data: (_socket, bytes) => channel.#receive(bytes),
      drain: () => channel.#flush(),
      close: () => channel.#lose(),
      error: () => channel.#lose(),
    };
    // Bun's types do not have `fd`, its documentation does.
    const options = { fd: own, socket } as unknown as UnixSocketOptions<undefined>;
    channel.#socket = await Bun.connect(options);
    channel.#flush();
    return channel;
  }

  /** Aborted with `sandbox_died` when the supervisor is gone, not when we leave. */
  get closed(): AbortSignal {
    return this.#closed.signal;
  }

  newStream(): number {
    return this.#nextStream++;
  }

  listen(stream: number, handler: FrameHandler): void {
    this.#handlers.set(stream, handler);
    if (this.#beat !== null) return;
    this.#silentBeats = 0;
    this.#beat = setInterval(() => this.#checkSilence(), BEAT_MS);
  }

  /** Beats and not the time: after a pause of the whole node, or of a batch job, its processes go on one by one. */
  #checkSilence(): void {
    if (this.#handlers.size === 0) {
      this.#stopBeat();
      return;
    }
    this.#silentBeats++;
    if (this.#silentBeats === PING_AFTER_BEATS) this.send(encodeFrame(FRAME.ping, 0));
    if (this.#silentBeats < SILENT_BEATS) return;
    const socket = this.#socket;
    this.#lose("its supervisor does not answer");
    socket?.terminate();
  }

  #stopBeat(): void {
    if (this.#beat !== null) clearInterval(this.#beat);
    this.#beat = null;
  }

  unlisten(stream: number): void {
    this.#handlers.delete(stream);
  }

  send(frame: Uint8Array): void {
    this.#unsent.push(frame);
    if (this.#unsent.length === 1) this.#flush();
  }

  sendNumbers(type: number, stream: number, ...numbers: number[]): void {
    this.send(encodeNumbers(type, stream, ...numbers));
  }

  /** Resolves when the supervisor has taken all that was sent before. */
  ping(): Promise<void> {
    if (this.#closed.signal.aborted) return Promise.reject(this.#closed.signal.reason);
    const stream = this.newStream();
    return new Promise((resolve, reject) => {
      const onClosed = () => reject(this.#closed.signal.reason);
      this.#closed.signal.addEventListener("abort", onClosed);
      this.listen(stream, () => {
        this.unlisten(stream);
        this.#closed.signal.removeEventListener("abort", onClosed);
        resolve();
      });
      this.send(encodeFrame(FRAME.ping, stream));
    });
  }

  /**
   * Leaves between two frames, so that the next thread finds the beginning of one. Does not fail: what is
   * gone can be left at once, and the next to attach is told.
   */
  async detach(): Promise<void> {
    const settled = this.ping().then(
      async () => {
        if (!this.#decoder.atBoundary) await new Promise<void>((left) => (this.#leaving = left));
      },
      () => {},
    );
    await atMost(settled, DETACH_MS, undefined);
    this.drop();
  }

  /** Leaves at once: for a sandbox that is being ended. */
  drop(): void {
    this.#stopBeat();
    const socket = this.#socket;
    this.#socket = null;
    socket?.terminate();
  }

  #receive(bytes: Buffer): void {
    this.#silentBeats = 0;
    this.#decoder.push(bytes, (type, stream, payload) =>
      this.#handlers.get(stream)?.(type, payload),
    );
    if (this.#decoder.atBoundary) this.#leaving?.();
  }

  #flush(): void {
    for (;;) {
      const frame = this.#unsent[0];
      if (frame === undefined || this.#socket === null) return;
      const written = this.#socket.write(frame);
      if (written < 0) {
        this.#lose();
        return;
      }
      if (written < frame.length) {
        this.#unsent[0] = frame.subarray(written);
        return;
      }
      this.#unsent.shift();
    }
  }

  #lose(why = "its supervisor ended"): void {
    if (this.#socket === null) return;
    this.#stopBeat();
    this.#socket = null;
    this.#closed.abort(died(why));
  }
}

function died(why: string): ServiceError {
  return new ServiceError("sandbox_died", `the sandbox is gone: ${why}`);
}
