import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { abortable, atMost } from "../lib/abortable.ts";
import { BoundedOutput } from "../lib/bounded-output.ts";
import { terminalText } from "../lib/terminal-text.ts";
import type { AttachedContext } from "./attached-context.ts";
import { blame } from "./blame.ts";
import { errnoName, isShortage } from "./errno.ts";
import { type Exit, ProcessStream, StartError } from "./process-stream.ts";
import { type CellEnd, PythonConnection } from "./python-connection.ts";
import type { CellResult, Python, RunOptions } from "./sandbox.ts";

/** The same in every thread, so that the next one can interrupt what another has started. */
const STREAM = 1;
const SOCKET = "py.sock";
const SIGINT = 2;
const SIGKILL = 9;
const EEXIST = 17;
const INTERRUPT_GRACE_MS = 1000;
const KILL_GRACE_MS = 5000;
const POLL_MS = 5;
/** Who answers without being the driver is not asked as often. */
const STRANGER_POLL_MS = 50;

export class PythonSession implements Python {
  readonly #context: AttachedContext;
  readonly #startTimeoutMs: number;
  #connection: PythonConnection | null = null;
  #process: ProcessStream | null = null;
  #busy = false;
  #python = "";

  static async open(
    context: AttachedContext,
    startTimeoutMs: number,
    signal?: AbortSignal,
  ): Promise<PythonSession> {
    const session = new PythonSession(context, startTimeoutMs);
    await session.#connect(signal);
    return session;
  }

  private constructor(context: AttachedContext, startTimeoutMs: number) {
    this.#context = context;
    this.#startTimeoutMs = startTimeoutMs;
  }

  async run(code: string, options: RunOptions): Promise<CellResult> {
    if (this.#busy) throw new Error("bug: the session runs a cell already");
    options.signal?.throwIfAborted();
    this.#busy = true;
    const startMs = performance.now();
    const output = new BoundedOutput(options.maxOutputBytes);
    try {
      let restarted = false;
      if (!this.#connection?.open) restarted = await this.#restart(options.signal);
      const connection = this.#connection as PythonConnection;
      const running = connection.run(code, options.maxOutputBytes, output);
      this.#context.handle.used = true;
      const first = await abortable(
        atMost(running, options.timeoutMs, "late" as const),
        options.signal,
      );
      const done = first === "late" ? await this.#interrupt(running, options.signal) : first;
      // The interpreter ended in the cell, or had to be ended: the next cell finds a fresh one.
      if (done === null) restarted = await this.#restart(options.signal);
      else this.#python = done.python;
      output.skip(done?.cut ?? 0);
      return {
        output: output.text(terminalText),
        ok: first !== "late" && done !== null && done.ok,
        images: done?.images ?? [],
        cwd: done?.cwd ?? this.#context.paths.home,
        python: this.#python,
        timedOut: first === "late",
        restarted,
        cutBytes: output.cutBytes,
        durationMs: performance.now() - startMs,
      };
    } catch (error) {
      this.disconnect();
      throw error;
    } finally {
      this.#busy = false;
    }
  }

  async close(): Promise<void> {
    this.disconnect();
    await this.#kill();
  }

  /** Leaves the interpreter running. */
  disconnect(): void {
    this.#connection?.close();
    this.#connection = null;
  }

  async #interrupt(
    running: Promise<CellEnd | null>,
    signal?: AbortSignal,
  ): Promise<CellEnd | null> {
    this.#signal(SIGINT);
    const done = await abortable(atMost(running, INTERRUPT_GRACE_MS, null), signal);
    if (done === null) this.disconnect();
    return done;
  }

  /** Returns true: what the session knew is lost. */
  async #restart(signal?: AbortSignal): Promise<true> {
    this.disconnect();
    await abortable(this.#kill(), signal);
    await this.#connect(signal);
    return true;
  }

  #signal(number: number): void {
    const { channel } = this.#context;
    ProcessStream.signalById(channel, STREAM, number);
  }

  async #kill(): Promise<void> {
    this.#signal(SIGKILL);
    const exited = this.#process?.exited.catch(() => {}) ?? this.#context.channel.ping();
    await atMost(exited, KILL_GRACE_MS, null);
  }

  /** To the one that runs, also where another thread has started it; else to a fresh one. */
  async #connect(signal?: AbortSignal): Promise<void> {
    const stop = performance.now() + this.#startTimeoutMs;
    const { handle } = this.#context;
    let process = this.#spawn();
    const ended = { exit: null as Exit | StartError | null };
    const follow = (stream: ProcessStream) =>
      stream.exited.then(
        (exit) => (ended.exit = exit),
        (error) => (ended.exit = error instanceof StartError ? error : null),
      );
    follow(process);
    while (performance.now() < stop) {
      signal?.throwIfAborted();
      this.#context.channel.closed.throwIfAborted();
      const runs = ended.exit === null || isAlreadyThere(ended.exit);
      if (!runs) throw blame(notStarted(ended.exit), handle);
      const connection = await PythonConnection.open(join(handle.dir, "io", SOCKET));
      if (connection && (await this.#greet(connection, stop, signal))) return;
      // It was there when we asked and has gone since: its place is free now.
      if (isAlreadyThere(ended.exit)) {
        ended.exit = null;
        process = this.#spawn();
        follow(process);
      }
      await abortable(Bun.sleep(connection ? STRANGER_POLL_MS : POLL_MS), signal);
    }
    const late = `python3 did not answer within ${this.#startTimeoutMs} ms`;
    throw new ServiceError("sandbox_protocol", late);
  }

  /** False: it did not answer, or was about to end. */
  async #greet(connection: PythonConnection, stop: number, signal?: AbortSignal): Promise<boolean> {
    const left = Math.max(0, stop - performance.now());
    const { closed } = this.#context.channel;
    let hello = false;
    try {
      hello = await abortable(atMost(connection.hello, left, false), signal, closed);
    } finally {
      if (!hello) connection.close();
    }
    if (hello) this.#connection = connection;
    return hello;
  }

  #spawn(): ProcessStream {
    const { channel, paths, env } = this.#context;
    const argv = ["python3", join(paths.assets, "ipython-driver.py"), join(paths.io, SOCKET)];
    this.#process = new ProcessStream(
      channel,
      { kind: "null", cwd: paths.home, argv, env },
      () => {},
      STREAM,
    );
    return this.#process;
  }
}

function isAlreadyThere(exit: Exit | StartError | null): boolean {
  return exit instanceof StartError && exit.errno === EEXIST;
}

function notStarted(exit: Exit | StartError | null): ServiceError {
  const errno = exit instanceof StartError ? errnoName(exit.errno) : undefined;
  if (isShortage(errno)) {
    return new ServiceError("sandbox_protocol", `cannot start python3: ${errno}`);
  }
  const why =
    exit instanceof StartError
      ? `cannot start python3 (${errno}): the image must have one`
      : `python3 ended while it started, with ${exit?.code ?? `signal ${exit?.signal}`}`;
  return new ServiceError("image_invalid", why);
}
