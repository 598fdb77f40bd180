import type { ToolLimits, ToolName } from "../../src/agent/tool.ts";
import { createTools } from "../../src/agent/tools.ts";
import type { DriverName } from "../../src/sandbox/sandbox.ts";
import { NO_ABORT, setup } from "../sandbox/setup.ts";

export const DRIVERS: DriverName[] = ["host", "apptainer", "bubblewrap"];

/** One tool on a real sandbox; `call` answers with the text that the model would see. */
export async function sandboxed(
  driver: DriverName,
  name: ToolName,
  changes: Partial<ToolLimits> = {},
) {
  const bundle = await setup(driver);
  const sandbox = await bundle.open();
  const limits = { toolTimeoutMs: 30_000, maxOutputBytes: 10_000, ...changes };
  const [tool] = createTools([name], { sandbox, limits, signal: NO_ABORT });
  return {
    sandbox,
    call: async (args: Record<string, unknown>) => (await tool?.run(args))?.text ?? "",
    [Symbol.asyncDispose]: () => bundle[Symbol.asyncDispose](),
  };
}
