import type { CellResult, Python } from "../sandbox/sandbox.ts";
import {
  joinOutput,
  needSandbox,
  requireText,
  type Tool,
  type ToolContext,
  type ToolResult,
  toolSchema,
} from "./tool.ts";

/** How long an IPython session may take to start. Units: milliseconds. */
export const PYTHON_START_TIMEOUT_MS = 60_000;

export function ipythonTool(context: ToolContext): Tool {
  let python: Python | undefined;
  let fresh = true;
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
      const { workdir } = context;
      if (fresh && workdir !== undefined) {
        await python.run(`import os; os.chdir(${JSON.stringify(workdir)})`, options);
      }
      fresh = false;
      return describeCell(await python.run(code, options), timeoutMs);
    },
  };
}

/** As clients of ProRL Agent know it from chats without pictures. */
const IMAGE = "![image](data:image/png;base64, ...) already displayed to user";

function describeCell(result: CellResult, timeoutMs: number): ToolResult {
  const notes = result.images.map(() => IMAGE);
  if (result.timedOut) notes.push(`[Execution timed out (${timeoutMs / 1000} seconds).]`);
  if (result.restarted) notes.push("[The interpreter was restarted: its variables are lost.]");
  if (result.ok && notes.length === 0 && result.output.trim() === "") {
    notes.push("[Code executed successfully with no output]");
  }
  if (result.cwd !== "") notes.push(`[Jupyter current working directory: ${result.cwd}]`);
  if (result.python !== "") notes.push(`[Jupyter Python interpreter: ${result.python}]`);
  const text = joinOutput(result.output, notes);
  return result.timedOut ? { text, ok: false, timedOut: true } : { text, ok: result.ok };
}
