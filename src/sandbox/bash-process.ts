import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { ServiceError } from "../errors.ts";
import { abortable, atMost } from "../lib/abortable.ts";
import { shellWord } from "../lib/shell-word.ts";
import type { AttachedContext } from "./attached-context.ts";
import { endOfKilled } from "./exec.ts";
import { type Marker, MarkerScanner } from "./marker-scanner.ts";
import { type Exit, ProcessStream } from "./process-stream.ts";

const SIGINT = 2;
const SIGKILL = 9;
const START_MS = 20_000;
/** After C-c, and again after SIGKILL of what runs in the foreground. */
const GRACE_MS = 500;

/** Printable, on one line, and far from the 4095 bytes that a terminal takes as a line. */
const TYPED = /^[\x20-\x7e]{0,400}$/;

const SETS_TRAP = /\btrap\b[^\n]*\bERR\b/;

/** How a command ended: back at the prompt, or with the shell itself. */
export type Ending = Marker | Exit;

export type BashOptions = {
  /** Of the file that carries its commands; unique in the sandbox. */
  name: string;
  cwd: string;
  /** Sees bytes that are only valid during the call. */
  onOutput(bytes: Buffer): void;
  signal?: AbortSignal | undefined;
};

/** One bash on a terminal, from its start to its end. */
export class BashProcess {
  readonly #textOnHost: string;
  readonly #textInside: string;
  readonly #process: ProcessStream;
  readonly #scanner: MarkerScanner;
  #ended = Promise.withResolvers<Ending>();
  #last: Marker = { status: 0, cwd: "", python: "" };
  #trapsErrors = false;
  #killed = false;
  #atPrompt = false;

  /** @throws StartError, ServiceError `sandbox_protocol`, or the abort reason. */
  static async start(context: AttachedContext, options: BashOptions): Promise<BashProcess> {
    const bash = new BashProcess(context, options);
    try {
      const started = bash.#process.started.then(() => true);
      const isStarted = await abortable(atMost(started, START_MS, false), options.signal);
      const ending = isStarted ? await bash.ending(START_MS, options.signal) : "late";
      if (ending !== "late" && "cwd" in ending) return bash;
      throw new ServiceError("sandbox_protocol", "bash does not come to its prompt");
    } catch (error) {
      bash.kill();
      throw error;
    }
  }

  private constructor(context: AttachedContext, { name, cwd, onOutput }: BashOptions) {
    this.#textOnHost = join(context.handle.dir, "ro", "shell", name);
    this.#textInside = join(context.paths.assets, "shell", name);
    this.#scanner = new MarkerScanner((bytes) => {
      if (!this.#killed) onOutput(bytes);
    });
    const nonce = this.#expectMarker();
    const rc = join(context.paths.assets, "shell-rc.bash");
    const argv = ["bash", "--noprofile", "--noediting", "--rcfile", rc, "-i"];
    const env = { ...context.env, ROLLOUT_NONCE: nonce };
    this.#process = new ProcessStream(
      context.channel,
      { kind: "terminal", cwd, argv, env },
      (bytes) => this.#take(bytes),
    );
    this.#process.exited.then(
      (exit) => this.#ended.resolve(exit),
      (error) => {
        this.#ended.promise.catch(() => {});
        this.#ended.reject(error);
      },
    );
  }

  get open(): boolean {
    return this.#process.open;
  }

  /** Whether the command that was run last has ended, and the shell has not. */
  get atPrompt(): boolean {
    return this.#atPrompt;
  }

  /** Resolves also where it could not be started. */
  get exited(): Promise<unknown> {
    return this.#process.exited.catch(() => {});
  }

  /**
   * `&&` or `||` hands `$?` of the last command on without failing in the eyes of `set -e` and `trap ERR`. Nothing is
   * redirected that need not be, for that takes longer than what is in it.
   */
  run(command: string): void {
    const set = `__rollout_nonce=${this.#expectMarker()} PROMPT_COMMAND=$__rollout_prompt`;
    this.#trapsErrors ||= SETS_TRAP.test(command);
    const text = this.#trapsErrors ? withResult(command) : command;
    const { status, isTraced } = this.#last;
    const isTyped = TYPED.test(text);
    let begin = set;
    if (status !== 0 || !isTyped) begin += `; __rollout_begin ${status}`;
    if (!isTyped) begin += ` ${this.#putIntoFile(text)}`;
    if (status !== 0 || !isTyped || isTraced) begin = `{ ${begin}; } 2>/dev/null`;
    // After a text that ended within a quote bash takes the next `{` for a word, unless a line came between.
    const reset = status === 0 ? "" : "\n";
    const then = status === 0 ? "&&" : "||";
    const words = isTyped ? shellWord(text) : '"$__rollout_text"';
    const line = `${reset} ${begin} ${then} eval -- ${words}; { __rollout_end; } 2>/dev/null\n`;
    this.#process.typeAfterReset(line);
  }

  /** As long as it likes, and without the terminal's control characters. The sandbox can put no link in our way. */
  #putIntoFile(text: string): string {
    writeFileSync(this.#textOnHost, text.replaceAll("\0", ""));
    return this.#textInside;
  }

  /** To the terminal, for whoever reads there; control characters mean what they mean there. */
  write(input: string): void {
    this.#process.write(Buffer.from(input));
  }

  async ending(timeoutMs: number, signal?: AbortSignal): Promise<Ending | "late"> {
    return await abortable(atMost(this.#ended.promise, timeoutMs, "late" as const), signal);
  }

  /** Gently first, so that variables and folder survive; the shell itself only where nothing helps. */
  async stop(signal?: AbortSignal): Promise<Ending> {
    this.#process.signal(SIGINT, "foreground");
    let ending = await this.ending(GRACE_MS, signal);
    if (ending !== "late") return ending;
    this.#process.signal(SIGKILL, "foregroundButLeader");
    ending = await this.ending(GRACE_MS, signal);
    if (ending !== "late") return ending;
    this.kill();
    return await endOfKilled(this.#process, "the shell", signal);
  }

  /** The shell and what it runs in front; its background jobs live on, as after `kill -9 $$`. */
  kill(): void {
    this.#killed = true;
    if (!this.open) return;
    this.#process.signal(SIGKILL, "foregroundButLeader");
    this.#process.signal(SIGKILL);
  }

  #expectMarker(): string {
    const nonce = crypto.randomUUID();
    this.#ended = Promise.withResolvers<Ending>();
    this.#atPrompt = false;
    this.#scanner.expect(nonce);
    return nonce;
  }

  #take(bytes: Buffer): void {
    const marker = this.#scanner.push(bytes);
    if (marker === null) return;
    this.#last = marker;
    this.#atPrompt = true;
    this.#ended.resolve(marker);
  }
}

/**
 * A trap for errors would see a command that fails, and then the `eval` that ran it: this makes that one succeed. Not
 * where one more line could belong to the text itself.
 */
function withResult(text: string): string {
  return text.includes("<<") || text.endsWith("\\") ? text : `${text}\n__rollout_result=$?`;
}
