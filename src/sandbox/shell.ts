import { ServiceError } from "../errors.ts";
import { atMost } from "../lib/abortable.ts";
import { BoundedOutput } from "../lib/bounded-output.ts";
import { terminalText } from "../lib/terminal-text.ts";
import type { AttachedContext } from "./attached-context.ts";
import { BashProcess, type Ending } from "./bash-process.ts";
import { blame } from "./blame.ts";
import { errnoName, isShortage } from "./errno.ts";
import { StartError } from "./process-stream.ts";
import type { CommandOptions, CommandResult, Shell } from "./sandbox.ts";

/** What background jobs print between two commands: the next result shows it. */
const IDLE_BYTES = 16_384;

/** What was killed ends within this, or hangs in the kernel. */
const CLOSE_MS = 3000;

/** A bash that is replaced when it ends. One command at a time. */
export class BashShell implements Shell {
  readonly #context: AttachedContext;
  readonly #name: string;
  #bash: BashProcess | null = null;
  #output = new BoundedOutput(IDLE_BYTES);
  #lastOutputMs = 0;
  #cwd: string;
  #python = "";
  #busy = false;
  #isLeft = false;

  /** @param name of the file that carries its commands; unique in the sandbox. */
  static async open(
    context: AttachedContext,
    name: string,
    signal?: AbortSignal,
  ): Promise<BashShell> {
    const shell = new BashShell(context, name);
    await shell.#start(signal);
    return shell;
  }

  private constructor(context: AttachedContext, name: string) {
    this.#context = context;
    this.#name = name;
    this.#cwd = context.paths.home;
  }

  get left(): "running" | "ended" | null {
    if (!this.#isLeft) return null;
    return this.#bash?.open && !this.#bash.atPrompt ? "running" : "ended";
  }

  run(command: string, options: CommandOptions): Promise<CommandResult> {
    if (this.left === "running") throw new Error("bug: the shell runs a command already");
    return this.#exclusively(options, async () => {
      // It was killed between two commands, or with one that was aborted.
      const wasGone = !this.#bash?.open;
      const bash = wasGone ? await this.#start(options.signal) : (this.#bash as BashProcess);
      this.#openOutput(options.maxOutputBytes);
      bash.run(command);
      this.#context.handle.used = true;
      return await this.#answer(bash, options, wasGone);
    });
  }

  resume(input: string, options: CommandOptions): Promise<CommandResult> {
    const bash = this.#bash;
    if (!this.#isLeft || bash === null) throw new Error("bug: no command was left");
    return this.#exclusively(options, async () => {
      if (input !== "") bash.write(input);
      return await this.#answer(bash, options, false);
    });
  }

  async close(): Promise<void> {
    this.#bash?.kill();
    // One that hangs in the kernel goes with the sandbox.
    if (this.#bash) await atMost(this.#bash.exited, CLOSE_MS, null);
  }

  async #exclusively(
    options: CommandOptions,
    work: () => Promise<CommandResult>,
  ): Promise<CommandResult> {
    if (this.#busy) throw new Error("bug: the shell runs a command already");
    options.signal?.throwIfAborted();
    this.#busy = true;
    this.#isLeft = false;
    let nextBytes = IDLE_BYTES;
    try {
      const result = await work();
      this.#isLeft = result.running;
      if (result.running) nextBytes = options.maxOutputBytes;
      return result;
    } catch (error) {
      this.#bash?.kill();
      this.#bash = null;
      throw error;
    } finally {
      this.#output = new BoundedOutput(nextBytes);
      this.#busy = false;
    }
  }

  /** Waits for the end of what runs, as long as `options` say, and tells how far it came. */
  async #answer(
    bash: BashProcess,
    options: CommandOptions,
    wasGone: boolean,
  ): Promise<CommandResult> {
    const startMs = performance.now();
    const output = this.#output;
    const first = await this.#wait(bash, options, startMs);
    const isEarly = first === "late" || first === "quiet";
    const running = isEarly && options.late === "leave";
    let ending: Ending | null = null;
    if (!running) ending = isEarly ? await bash.stop(options.signal) : first;
    if (ending && "cwd" in ending) {
      this.#cwd = ending.cwd;
      this.#python = ending.python;
    }
    const isReplaced = ending !== null && !("cwd" in ending);
    if (isReplaced) await this.#start(options.signal);
    return {
      output: output.text(terminalText),
      exitCode: isEarly || ending === null ? null : exitCodeOf(ending),
      cwd: this.#cwd,
      python: this.#python,
      timedOut: first === "late",
      running,
      shellReplaced: wasGone || isReplaced,
      cutBytes: output.cutBytes,
      durationMs: performance.now() - startMs,
    };
  }

  async #wait(
    bash: BashProcess,
    { timeoutMs, quietMs, signal }: CommandOptions,
    startMs: number,
  ): Promise<Ending | "late" | "quiet"> {
    for (;;) {
      const heardMs = Math.max(startMs, this.#lastOutputMs);
      const quietEndMs = quietMs === undefined ? Number.POSITIVE_INFINITY : heardMs + quietMs;
      const endMs = startMs + timeoutMs;
      const waitMs = Math.min(endMs, quietEndMs) - performance.now();
      const ending = await bash.ending(Math.max(0, waitMs), signal);
      if (ending !== "late") return ending;
      if (performance.now() >= endMs - 1) return "late";
      const isQuiet = Math.max(startMs, this.#lastOutputMs) === heardMs;
      if (isQuiet && performance.now() >= quietEndMs - 1) return "quiet";
    }
  }

  /** A fresh bash, in the folder of the one before where that still exists. */
  async #start(signal?: AbortSignal): Promise<BashProcess> {
    this.#bash = null;
    try {
      this.#bash = await this.#startIn(this.#cwd, signal);
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      this.#cwd = this.#context.paths.home;
      this.#bash = await this.#startIn(this.#cwd, signal).catch((second) => {
        if (!(second instanceof StartError)) throw second;
        throw blame(notStarted(second), this.#context.handle);
      });
    }
    return this.#bash;
  }

  #startIn(cwd: string, signal?: AbortSignal): Promise<BashProcess> {
    const onOutput = (bytes: Buffer) => {
      this.#lastOutputMs = performance.now();
      this.#output.push(bytes);
    };
    return BashProcess.start(this.#context, { name: this.#name, cwd, onOutput, signal });
  }

  /** What came since the last command goes in front, as a terminal would show it. */
  #openOutput(maxBytes: number): void {
    const before = this.#output;
    this.#output = new BoundedOutput(maxBytes);
    if (before.isEmpty) return;
    const { head, tail } = before.parts();
    this.#output.push(head);
    this.#output.skip(before.cutBytes);
    this.#output.push(tail);
  }
}

function exitCodeOf(ending: Ending): number {
  return "cwd" in ending ? ending.status : (ending.code ?? 128 + (ending.signal ?? 0));
}

function notStarted(error: StartError): ServiceError {
  const why = errnoName(error.errno);
  const options = { cause: error };
  if (isShortage(why)) {
    return new ServiceError("sandbox_protocol", `cannot start bash: ${why}`, options);
  }
  const what = `cannot start bash (${why}): the image must have one`;
  return new ServiceError("image_invalid", what, options);
}
