import type { CommandOptions, CommandResult, Shell } from "../sandbox/sandbox.ts";
import { topLevelStatements } from "./bash-statements.ts";
import { clip } from "./clip.ts";
import {
  joinOutput,
  mistake,
  needSandbox,
  requireText,
  type Tool,
  type ToolContext,
  type ToolResult,
  timeLimitMs,
  toolSchema,
} from "./tool.ts";

/** Of one command's output in memory: the window at four fifths needs more than the model gets to see. */
const CAPTURE_BYTES = 1 << 20;

/** What a kind does in a shell before the agent's first command is quick. */
const START_LIMIT_MS = 30_000;

/** How long input may take to end the command. */
const INPUT_WAIT_MS = 10_000;

const KEYS = new Map([
  ["C-c", "\x03"],
  ["C-z", "\x1a"],
  ["C-d", "\x04"],
]);

const HINT =
  "You may wait longer to see additional output by sending empty command '', send other commands to interact with the current process, or send keys to interrupt/kill the command.";
const PREVIOUS = "[Below is the output of the previous command.]";

const DESCRIPTION = `Execute a bash command in a persistent shell: the working directory, variables and background jobs survive between calls.
* One command at a time: chain several with && or ;
* A command that is not done in time goes on, and the answer has exit code -1. Then send an empty command to see more of its output, or set is_input to "true" to send it text or a key (C-c, C-z, C-d).`;

export function bashTool(context: ToolContext): Tool {
  let session: BashSession | undefined;
  return {
    schema: toolSchema(
      "execute_bash",
      DESCRIPTION,
      {
        command: {
          type: "string",
          description:
            "The command to execute; with is_input, what to send to the running one. Empty: more of its output.",
        },
        is_input: {
          type: "string",
          description: "Whether the command is input to the running process.",
          enum: ["true", "false"],
        },
        timeout: { type: "number", description: "Time limit in seconds for this command." },
      },
      ["command"],
    ),
    async run(args) {
      const command = requireText(args, "command");
      if (typeof command !== "string") return command;
      const isInput = ["true", true].includes(args.is_input as string | boolean);
      if (!isInput && ![undefined, null, "false", false].includes(args.is_input as null)) {
        return mistake('the argument "is_input" must be "true" or "false".');
      }
      session ??= new BashSession(context, await openShell(context));
      return await session.take(command.trim(), isInput, timeLimitMs(args, context.limits));
    },
  };
}

async function openShell(context: ToolContext): Promise<Shell> {
  const { signal, shellStart } = context;
  const shell = await needSandbox(context, "execute_bash").shell(signal);
  if (shellStart !== undefined) {
    const options = { timeoutMs: START_LIMIT_MS, maxOutputBytes: CAPTURE_BYTES, signal };
    await shell.run(shellStart, options);
  }
  return shell;
}

/** The conversation with one shell. */
class BashSession {
  readonly #context: ToolContext;
  readonly #shell: Shell;

  constructor(context: ToolContext, shell: Shell) {
    this.#context = context;
    this.#shell = shell;
  }

  async take(command: string, isInput: boolean, timeoutMs: number): Promise<ToolResult> {
    const { left } = this.#shell;
    if (command === "") {
      if (left === null) return mistake("No previous running command to retrieve logs from.");
      return await this.#readOn(timeoutMs);
    }
    if (isInput) {
      if (left === null) return mistake("No previous running command to interact with.");
      if (left === "ended") return await this.#tooLate(command);
      return await this.#send(command, Math.min(timeoutMs, INPUT_WAIT_MS));
    }
    if (left === "running") return await this.#refuse(command);
    const statements = await this.#statements(command);
    if (statements.length > 1) return refuseSeveral(statements);
    return await this.#run(command, timeoutMs);
  }

  #statements(command: string): Promise<string[]> {
    const sandbox = needSandbox(this.#context, "execute_bash");
    return topLevelStatements(command, sandbox, this.#context.signal);
  }

  async #run(command: string, timeoutMs: number): Promise<ToolResult> {
    const result = await this.#shell.run(command, this.#options(timeoutMs));
    return this.#describe(result, this.#ended(result, timeoutMs));
  }

  async #readOn(timeoutMs: number): Promise<ToolResult> {
    const result = await this.#shell.resume("", this.#options(timeoutMs));
    return this.#describe(result, this.#ended(result, timeoutMs), PREVIOUS);
  }

  async #send(input: string, timeoutMs: number): Promise<ToolResult> {
    const key = KEYS.get(input);
    const { quietMs: _, ...options } = this.#options(timeoutMs);
    const result = await this.#shell.resume(key ?? `${input}\n`, options);
    if (!result.running) {
      const sent = key === undefined ? "" : ` CTRL+${input.slice(-1).toUpperCase()} was sent.`;
      return this.#describe(result, `${completed(result)}${sent}]`);
    }
    const note =
      key === undefined
        ? "[Command is still running. Send empty command '' to get more output, or send C-c/C-z to interrupt.]"
        : `[The interrupt signal ${input} was sent but command may still be running.]`;
    return this.#describe(result, note);
  }

  async #tooLate(input: string): Promise<ToolResult> {
    const result = await this.#shell.resume("", this.#options(0));
    const note = `[Your input "${input}" was NOT sent: the command had completed before.]`;
    return this.#describe(result, `${completed(result)}]\n${note}`, PREVIOUS);
  }

  async #refuse(command: string): Promise<ToolResult> {
    const result = await this.#shell.resume("", this.#options(0));
    const note =
      `[Your command "${command}" is NOT executed. ` +
      "The previous command is still running - You CANNOT send new commands until the previous command is completed. " +
      "By setting `is_input` to `true`, you can interact with the current process: " +
      "You may wait longer to see additional output of the previous command by sending empty command '', " +
      "send other commands to interact with the current process, " +
      'or send keys ("C-c", "C-z", "C-d") to interrupt/kill the previous command before sending your new command.]';
    return this.#describe(result, note, PREVIOUS);
  }

  #options(timeoutMs: number): CommandOptions {
    const { signal } = this.#context;
    const { quietMs } = this.#context.limits;
    const quiet = quietMs === undefined ? {} : { quietMs };
    return { timeoutMs, maxOutputBytes: CAPTURE_BYTES, signal, late: "leave", ...quiet };
  }

  #ended(result: CommandResult, timeoutMs: number): string {
    if (!result.running) return `${completed(result)}]`;
    if (result.timedOut) {
      return `[The command timed out after ${inSeconds(timeoutMs)} seconds. ${HINT}]`;
    }
    const quietMs = this.#context.limits.quietMs ?? 0;
    return `[The command has no new output after ${quietMs / 1000} seconds. ${HINT}]`;
  }

  /** Upstream's order: what came before, the output, how it ended, and then the footers. */
  #describe(result: CommandResult, note: string, before?: string): ToolResult {
    const { maxOutputBytes } = this.#context.limits;
    const mark = `\n[... ${result.cutBytes} bytes cut ...]\n`;
    const earlier = result.cutBytes > 0 ? { bytes: result.cutBytes, mark } : undefined;
    const output = clip(result.output, maxOutputBytes, earlier);
    const isClipped = output !== result.output || result.cutBytes > 0;
    const prefix = [
      isClipped ? ["Previous command outputs are truncated"] : [],
      before ?? [],
    ].flat();
    const notes = [note];
    if (result.shellReplaced) {
      notes.push("[The shell ended and was replaced: its variables and background jobs are lost.]");
    }
    if (result.cwd !== "") notes.push(`[Current working directory: ${result.cwd}]`);
    if (result.python !== "") notes.push(`[Python interpreter: ${result.python}]`);
    if (!result.running) notes.push(`[Command finished with exit code ${result.exitCode}]`);
    const text = [...prefix, joinOutput(output, notes)].join("\n");
    // Times and process numbers in its output make no other result of it. What runs on is another each time.
    const outcome = result.running ? {} : { outcome: `exit code ${result.exitCode}` };
    return { text, ok: !result.timedOut, ...outcome, ...(result.timedOut && { timedOut: true }) };
  }
}

function completed({ exitCode }: CommandResult): string {
  return `[The command completed with exit code ${exitCode}.`;
}

/** As Python prints a float. */
function inSeconds(ms: number): string {
  return Number.isInteger(ms / 1000) ? (ms / 1000).toFixed(1) : `${ms / 1000}`;
}

function refuseSeveral(statements: string[]): ToolResult {
  const list = statements.map((statement, index) => `(${index + 1}) ${statement.trim()}`);
  return mistake(
    "Cannot execute multiple commands at once.\n" +
      "Please run each command separately OR chain them into a single command via && or ;\n" +
      `Provided commands:\n${list.join("\n")}`,
  );
}
