import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { abortable, atMost } from "../lib/abortable.ts";
import { BoundedOutput } from "../lib/bounded-output.ts";
import { terminalText } from "../lib/terminal-text.ts";
import type { AttachedContext } from "./attached-context.ts";
import { type Marker, MarkerScanner } from "./marker-scanner.ts";
import { type Exit, ProcessStream, StartError } from "./process-stream.ts";
import type { CommandResult, RunOptions, Shell } from "./sandbox.ts";

const SIGINT = 2;
const SIGKILL = 9;
const START_MS = 20_000;
/** After C-c, and again after SIGKILL of what runs in the foreground. */
const GRACE_MS = 500;
/** What background jobs print between two commands: the next result shows it. */
const IDLE_BYTES = 16_384;

type Ending = Marker | Exit | "late";

/** A bash on a terminal of its own. One command at a time. */
export class BashShell implements Shell {
  readonly #context: AttachedContext;
  readonly #name: string;
  readonly #scanner = new MarkerScanner((bytes) => this.#output.push(bytes));
  #output = new BoundedOutput(IDLE_BYTES);
  #process: ProcessStream | null = null;
  #marker = Promise.withResolvers<Marker>();
  #status = 0;
  #cwd: string;
  #busy = false;

  /** @param name of the file that carries its commands; unique in the sandbox. */
  static async open(
    context: AttachedContext,
    name: string,
    signal?: AbortSignal,
  ): Promise<BashShell> {
    const shell = new BashShell(context, name);
    try {
      await shell.#start(signal);
      return shell;
    } catch (error) {
      shell.#kill();
      throw error;
    }
  }

  private constructor(context: AttachedContext, name: string) {
    this.#context = context;
    this.#name = name;
    this.#cwd = context.paths.home;
  }

  async run(command: string, options: RunOptions): Promise<CommandResult> {
    if (this.#busy) throw new Error("bug: the shell runs a command already");
    options.signal?.throwIfAborted();
    this.#busy = true;
    const startMs = performance.now();
    try {
      // It was killed between two commands, or with one that was aborted.
      const wasGone = !this.#process?.open;
      if (wasGone) await this.#start(options.signal);
      const output = this.#openOutput(options.maxOutputBytes);
      this.#type(command);
      const first = await this.#ending(options.timeoutMs, options.signal);
      const ending = first === "late" ? await this.#stop(options.signal) : first;
      const ended = !("cwd" in ending);
      const exitCode =
        "cwd" in ending ? ending.status : (ending.code ?? 128 + (ending.signal ?? 0));
      if (ended) await this.#start(options.signal);
      return {
        output: output.text(terminalText),
        exitCode: first === "late" ? null : exitCode,
        cwd: this.#cwd,
        timedOut: first === "late",
        shellReplaced: wasGone || ended,
        cutBytes: output.cutBytes,
        durationMs: performance.now() - startMs,
      };
    } catch (error) {
      this.#kill();
      throw error;
    } finally {
      this.#output = new BoundedOutput(IDLE_BYTES);
      this.#busy = false;
    }
  }

  async close(): Promise<void> {
    const process = this.#process;
    this.#kill();
    await process?.exited.catch(() => {});
  }

  /** A fresh bash, in the folder of the one before where that still exists. */
  async #start(signal?: AbortSignal): Promise<void> {
    try {
      await this.#startIn(this.#cwd, signal);
    } catch (error) {
      if (!(error instanceof StartError)) throw error;
      this.#cwd = this.#context.paths.home;
      await this.#startIn(this.#cwd, signal).catch((second) => {
        if (!(second instanceof StartError)) throw second;
        const what = "cannot start bash: the image must have one";
        throw new ServiceError("image_invalid", what, { cause: second });
      });
    }
  }

  async #startIn(cwd: string, signal?: AbortSignal): Promise<void> {
    const { channel, paths, env } = this.#context;
    const nonce = this.#expectMarker();
    const rc = join(paths.assets, "shell-rc.bash");
    const process = new ProcessStream(
      channel,
      {
        kind: "terminal",
        cwd,
        argv: ["bash", "--noprofile", "--noediting", "--rcfile", rc, "-i"],
        env: { ...env, ROLLOUT_NONCE: nonce },
      },
      (bytes) => {
        if (this.#process !== process) return;
        const marker = this.#scanner.push(bytes);
        if (marker !== null) this.#marker.resolve(marker);
      },
    );
    this.#process = process;
    this.#status = 0;
    await abortable(process.started, signal);
    const ending = await this.#ending(START_MS, signal);
    if (ending !== "late" && "cwd" in ending) return;
    this.#kill();
    throw new ServiceError("sandbox_protocol", "bash started but did not come to its prompt");
  }

  #expectMarker(): string {
    const nonce = crypto.randomUUID();
    this.#marker = Promise.withResolvers<Marker>();
    this.#scanner.expect(nonce);
    return nonce;
  }

  /** What came since the last command goes in front, as a terminal would show it. */
  #openOutput(maxBytes: number): BoundedOutput {
    const output = new BoundedOutput(maxBytes);
    const { head, tail } = this.#output.parts();
    output.push(head);
    output.push(tail);
    this.#output = output;
    return output;
  }

  /**
   * The text goes through a file, so that neither the terminal's line limit nor its control characters
   * touch it. The sandbox has the folder read-only: it can put no link in our way. `&&` or `||` hands
   * `$?` of the last command on without failing in the eyes of `set -e` and `trap ERR`.
   */
  #type(command: string): void {
    const nonce = this.#expectMarker();
    const file = join("shell", this.#name);
    writeFileSync(join(this.#context.dir, "ro", file), command.replaceAll("\0", ""));
    const begin = `{ __rollout_begin ${nonce} ${join(this.#context.paths.assets, file)}; }`;
    const then = this.#status === 0 ? "&&" : "||";
    // After a text that ended within a quote bash takes the next `{` for a word, unless a line came between.
    const reset = this.#status === 0 ? "" : "\n";
    const line = `${reset} ${begin} 2>/dev/null ${then} eval -- "$__rollout_text"; { __rollout_end; } 2>/dev/null\n`;
    this.#process?.typeAfterReset(line);
  }

  async #ending(timeoutMs: number, signal?: AbortSignal): Promise<Ending> {
    const process = this.#process as ProcessStream;
    const either = Promise.race<Marker | Exit>([this.#marker.promise, process.exited]);
    const ending = await abortable(atMost(either, timeoutMs, "late" as const), signal);
    if (ending !== "late" && "cwd" in ending) {
      this.#status = ending.status;
      this.#cwd = ending.cwd;
    }
    return ending;
  }

  /** Gently first, so that variables and folder survive; the shell itself only where nothing helps. */
  async #stop(signal?: AbortSignal): Promise<Marker | Exit> {
    const process = this.#process as ProcessStream;
    process.signal(SIGINT, "foreground");
    let ending = await this.#ending(GRACE_MS, signal);
    if (ending !== "late") return ending;
    process.signal(SIGKILL, "foregroundButLeader");
    ending = await this.#ending(GRACE_MS, signal);
    if (ending !== "late") return ending;
    this.#kill();
    return await abortable(process.exited, signal);
  }

  /** The shell and what it runs in front; its background jobs live on, as after `kill -9 $$`. */
  #kill(): void {
    const process = this.#process;
    this.#process = null;
    if (!process?.open) return;
    process.signal(SIGKILL, "foregroundButLeader");
    process.signal(SIGKILL);
  }
}
