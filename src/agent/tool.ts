import type { ToolSchema } from "../inference/engine.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

/** What a tool answers. `finish` ends the rollout with this final message. */
export type ToolResult = { text: string; ok: boolean; finish?: string };

export type ToolContext = {
  sandbox: Sandbox | null;
  limits: ToolLimits;
  signal: AbortSignal;
};

export type ToolLimits = { toolTimeoutMs: number; maxOutputBytes: number };

/** One tool of one rollout. It may keep state, such as an open shell, between calls. */
export interface Tool {
  readonly schema: ToolSchema;
  run(args: Record<string, unknown>): Promise<ToolResult>;
}

export type ToolName = "execute_bash" | "execute_ipython_cell" | "think" | "finish";

export function toolSchema(
  name: ToolName,
  description: string,
  properties: Record<string, { type: string; description: string }>,
  required: string[],
): ToolSchema {
  return {
    type: "function",
    function: {
      name,
      description,
      parameters: { type: "object", properties, required, additionalProperties: false },
    },
  };
}
