import { ServiceError } from "../errors.ts";
import type { ToolSchema } from "../inference/engine.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";

/** What a tool answers. `finish` ends the rollout with this final message. */
export type ToolResult = {
  text: string;
  ok: boolean;
  /** It is not ok because its time was over. */
  timedOut?: true;
  finish?: string;
  /** What tells the loop detector whether two answers are the same, where the text would mislead it. */
  outcome?: string;
};

export type ToolContext = {
  sandbox: Sandbox | null;
  limits: ToolLimits;
  /** What a shell runs before its first command, unseen: `cd`, the environment. */
  shellStart?: string;
  /** Where an IPython session begins; otherwise in the home directory. */
  workdir?: string;
  signal: AbortSignal;
};

export type ToolLimits = {
  toolTimeoutMs: number;
  maxOutputBytes: number;
  /** Answer for a command that prints nothing for as long. Without: only its time limit counts. */
  quietMs?: number;
};

/** One tool of one rollout. It may keep state, such as an open shell, between calls. */
export interface Tool {
  readonly schema: ToolSchema;
  run(args: Record<string, unknown>): Promise<ToolResult>;
}

export type ToolName =
  | "execute_bash"
  | "execute_ipython_cell"
  | "str_replace_editor"
  | "think"
  | "finish";

type Property = {
  type: string;
  description: string;
  enum?: string[];
  items?: { type: string };
};

export function toolSchema(
  name: ToolName,
  description: string,
  properties: Record<string, Property>,
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

/** What the model did wrong: it is told, and may try again. */
export function mistake(text: string): ToolResult {
  return { text: `ERROR: ${text}`, ok: false };
}

export function requireText(args: Record<string, unknown>, name: string): string | ToolResult {
  const value = args[name];
  if (typeof value === "string") return value;
  const found = value === undefined ? "it is missing" : `it is ${typeof value}`;
  return mistake(`the argument "${name}" must be a string, but ${found}.`);
}

/** @throws ServiceError `instance_invalid` */
export function needSandbox(context: ToolContext, tool: ToolName): Sandbox {
  if (context.sandbox) return context.sandbox;
  throw new ServiceError("instance_invalid", `${tool} needs a sandbox, which this task kind lacks`);
}

/** The time limit that the model may ask for in seconds, up to the tool's own. */
export function timeLimitMs(args: Record<string, unknown>, limits: ToolLimits): number {
  const { timeout } = args;
  const askedMs = typeof timeout === "boolean" ? Number.NaN : Number(timeout) * 1000;
  return askedMs > 0 ? Math.min(askedMs, limits.toolTimeoutMs) : limits.toolTimeoutMs;
}

export function joinOutput(output: string, notes: string[]): string {
  const body = output.endsWith("\n") ? output.slice(0, -1) : output;
  return [...(body === "" ? [] : [body]), ...notes].join("\n");
}
