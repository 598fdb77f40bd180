import { ServiceError } from "../errors.ts";
import { askEngine, type EngineCall, type RetryLimits } from "./engine-call.ts";
import { EventStream } from "./event-stream.ts";
import type { Connections } from "./exchange.ts";
import { refusalOf } from "./refusal.ts";
import { parseReply, parseReplyText } from "./reply-json.ts";
import type { Json, Streamed } from "./wires/streamed.ts";

export type StreamOptions = {
  streamed: Streamed;
  /** The longest silence between two pieces of a reply. Units: milliseconds. */
  stallMs: number;
  /** Ends the call without an error. */
  stopped: AbortSignal | undefined;
};

/** What has come of a reply. */
export type StreamedReply = {
  /** In the shape of a whole one; null where nothing has come. */
  value: unknown;
  /** From the call to the first token. Units: milliseconds; null where none came as a piece. */
  firstTokenMs: number | null;
  /** Why it ended before its end; null where it is whole. */
  broken: { reason: unknown; stopped: boolean } | null;
};

const END = "[DONE]";
const STOPPED = new ServiceError("engine_aborted", "the call was stopped");

/**
 * Asks for a reply that comes in pieces, and puts it together. An engine that answers in one piece all the
 * same is taken at its word. Whatever ends the call, what has come until then is returned.
 */
export async function callStreamed(
  connections: Connections,
  call: EngineCall,
  limits: RetryLimits,
  options: StreamOptions,
  signal: AbortSignal,
): Promise<StreamedReply> {
  const ended = new AbortController();
  const onAbort = () => ended.abort(signal.reason);
  const onStop = () => ended.abort(STOPPED);
  const { stopped, stallMs } = options;
  const pieces = new Pieces(call, options.streamed);
  const watch = new SilenceWatch(stallMs, () => {
    const what = `sent nothing for ${stallMs} ms after ${pieces.count} tokens`;
    ended.abort(new ServiceError("engine_timeout", `${call.endpoint.shown} ${what}`));
  });
  const onEvents = (chunk: Uint8Array) => {
    pieces.push(chunk);
    if (pieces.count > 0) watch.heard();
  };
  if (signal.aborted) onAbort();
  else if (stopped?.aborted) onStop();
  signal.addEventListener("abort", onAbort, { once: true });
  stopped?.addEventListener("abort", onStop, { once: true });
  const told = () => ({ value: pieces.value, firstTokenMs: pieces.firstTokenMs });
  try {
    const { body } = await askEngine(connections, { ...call, onEvents }, limits, ended.signal);
    if (!pieces.began) pieces.value = parseReply(call.endpoint.shown, body) as Json;
    else if (!pieces.ended && !pieces.isWhole) {
      const message = `${call.endpoint.shown}: the stream ended without its end`;
      throw new ServiceError("engine_unreachable", message);
    }
    return { ...told(), broken: null };
  } catch (reason) {
    return { ...told(), broken: { reason, stopped: reason === STOPPED } };
  } finally {
    watch.end();
    signal.removeEventListener("abort", onAbort);
    stopped?.removeEventListener("abort", onStop);
  }
}

/** The pieces of one reply. */
class Pieces {
  value: Json | null = null;
  firstTokenMs: number | null = null;
  began = false;
  ended = false;
  readonly #call: EngineCall;
  readonly #streamed: Streamed;
  readonly #events = new EventStream((data) => this.#take(data));
  readonly #startMs = performance.now();

  constructor(call: EngineCall, streamed: Streamed) {
    this.#call = call;
    this.#streamed = streamed;
  }

  get count(): number {
    return this.value === null ? 0 : this.#streamed.count(this.value);
  }

  get isWhole(): boolean {
    return this.value !== null && this.#streamed.isWhole?.(this.value) === true;
  }

  push(chunk: Uint8Array): void {
    this.began = true;
    try {
      this.#events.push(chunk);
    } catch (cause) {
      if (cause instanceof ServiceError) throw cause;
      const message = `${this.#call.endpoint.shown}: the stream: ${(cause as Error).message}`;
      throw new ServiceError("engine_bad_reply", message, { cause });
    }
  }

  #take(data: string): void {
    if (data === END) this.ended = true;
    if (this.ended) return;
    const { endpoint } = this.#call;
    const piece = parseReplyText(endpoint.shown, data) as Json;
    if (isError(piece))
      throw refusalOf(endpoint, { ...errorStatus(piece), headers: {}, body: Buffer.from(data) });
    this.value = this.#streamed.add(this.value, piece);
    if (this.firstTokenMs === null && this.count > 0) {
      this.firstTokenMs = performance.now() - this.#startMs;
    }
  }
}

function isError(piece: Json): boolean {
  return piece.object === "error" || (piece.error !== undefined && piece.error !== null);
}

/** An error within a stream has its status in itself, if anywhere. */
function errorStatus({ error, code }: Json): { status: number } {
  const said = (error as Json | undefined)?.code ?? code;
  const status = typeof said === "number" && said >= 400 && said < 600 ? said : 500;
  return { status };
}

/** One timer for a stream, however many pieces it has. */
class SilenceWatch {
  readonly #limitMs: number;
  readonly #onSilence: () => void;
  #heardMs = 0;
  #timer: Timer | undefined;

  constructor(limitMs: number, onSilence: () => void) {
    this.#limitMs = limitMs;
    this.#onSilence = onSilence;
  }

  heard(): void {
    this.#heardMs = performance.now();
    this.#timer ??= setTimeout(() => this.#look(), this.#limitMs);
  }

  end(): void {
    clearTimeout(this.#timer);
  }

  #look(): void {
    const leftMs = this.#heardMs + this.#limitMs - performance.now();
    if (leftMs <= 0) this.#onSilence();
    else this.#timer = setTimeout(() => this.#look(), leftMs);
  }
}
