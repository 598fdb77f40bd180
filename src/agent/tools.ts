import { ServiceError } from "../errors.ts";
import type { CellResult, CommandResult, Python, Sandbox, Shell } from "../sandbox/sandbox.ts";
import { type Tool, type ToolContext, type ToolName, type ToolResult, toolSchema } from "./tool.ts";

/** How long an IPython session may take to start. Units: milliseconds. */
export const PYTHON_START_TIMEOUT_MS = 60_000;

const FACTORIES: Record<ToolName, (context: ToolContext) => Tool> = {
  execute_bash: bashTool,
  execute_ipython_cell: ipythonTool,
  think: thinkTool,
  finish: finishTool,
};

export function createTools(names: readonly ToolName[], context: ToolContext): Tool[] {
  return names.map((name) => FACTORIES[name](context));
}

function bashTool(context: ToolContext): Tool {
  let shell: Shell | undefined;
  return {
    schema: toolSchema(
      "execute_bash",
      "Execute a bash command in a persistent shell: the working directory, variables and background jobs survive between calls.",
      {
        command: { type: "string", description: "The command to execute." },
        timeout: { type: "number", description: "Time limit in seconds for this command." },
      },
      ["command"],
    ),
    async run(args) {
      const command = requireText(args, "command");
      if (typeof command !== "string") return command;
      const { toolTimeoutMs, maxOutputBytes } = context.limits;
      const asked = typeof args.timeout === "boolean" ? Number.NaN : Number(args.timeout) * 1000;
      const timeoutMs = asked > 0 ? Math.min(asked, toolTimeoutMs) : toolTimeoutMs;
      shell ??= await needSandbox(context, "execute_bash").shell(context.signal);
      const options = { timeoutMs, maxOutputBytes, signal: context.signal };
      return describeCommand(await shell.run(command, options), timeoutMs);
    },
  };
}

function describeCommand(result: CommandResult, timeoutMs: number): ToolResult {
  const notes: string[] = [];
  if (result.timedOut) {
    notes.push(`[The command timed out after ${(timeoutMs / 1000).toFixed(1)} seconds.]`);
  } else notes.push(`[The command completed with exit code ${result.exitCode}.]`);
  if (result.shellReplaced) {
    notes.push("[The shell ended and was replaced: its variables and background jobs are lost.]");
  }
  if (result.cwd !== "") notes.push(`[Current working directory: ${result.cwd}]`);
  return { text: joinOutput(result.output, notes), ok: !result.timedOut };
}

function ipythonTool(context: ToolContext): Tool {
  let python: Python | undefined;
  return {
    schema: toolSchema(
      "execute_ipython_cell",
      "Run a cell of Python code in a persistent IPython session.",
      { code: { type: "string", description: "The Python code to run." } },
      ["code"],
    ),
    async run(args) {
      const code = requireText(args, "code");
      if (typeof code !== "string") return code;
      const { toolTimeoutMs: timeoutMs, maxOutputBytes } = context.limits;
      const start = { startTimeoutMs: PYTHON_START_TIMEOUT_MS, signal: context.signal };
      python ??= await needSandbox(context, "execute_ipython_cell").python(start);
      const options = { timeoutMs, maxOutputBytes, signal: context.signal };
      return describeCell(await python.run(code, options), timeoutMs);
    },
  };
}

function describeCell(result: CellResult, timeoutMs: number): ToolResult {
  const notes: string[] = [];
  if (result.timedOut) notes.push(`[Execution timed out (${timeoutMs / 1000} seconds).]`);
  if (result.restarted) notes.push("[The interpreter was restarted: its variables are lost.]");
  if (result.ok && notes.length === 0 && result.output.trim() === "") {
    notes.push("[Code executed successfully with no output]");
  }
  return { text: joinOutput(result.output, notes), ok: result.ok && !result.timedOut };
}

function thinkTool(): Tool {
  return {
    schema: toolSchema(
      "think",
      "Log a thought. It obtains no new information and changes nothing.",
      { thought: { type: "string", description: "The thought to log." } },
      ["thought"],
    ),
    run: async (args) => {
      const thought = requireText(args, "thought");
      if (typeof thought !== "string") return thought;
      return { text: "Your thought has been logged.", ok: true };
    },
  };
}

function finishTool(): Tool {
  return {
    schema: toolSchema(
      "finish",
      "End the work on the task with a final message.",
      { message: { type: "string", description: "The final message, with the answer." } },
      ["message"],
    ),
    run: async (args) => {
      const message = requireText(args, "message");
      if (typeof message !== "string") return message;
      return { text: "", ok: true, finish: message };
    },
  };
}

function requireText(args: Record<string, unknown>, name: string): string | ToolResult {
  const value = args[name];
  if (typeof value === "string") return value;
  const found = value === undefined ? "it is missing" : `it is ${typeof value}`;
  return { text: `ERROR: the argument "${name}" must be a string, but ${found}.`, ok: false };
}

function needSandbox(context: ToolContext, tool: ToolName): Sandbox {
  if (context.sandbox) return context.sandbox;
  throw new ServiceError("instance_invalid", `${tool} needs a sandbox, which this task kind lacks`);
}

function joinOutput(output: string, notes: string[]): string {
  const body = output.endsWith("\n") ? output.slice(0, -1) : output;
  return [...(body === "" ? [] : [body]), ...notes].join("\n");
}
